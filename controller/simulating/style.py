"""How charts look, on top of the style that all pages share."""

from __future__ import annotations

from typing import Final

from controller.offline.style import STYLE

CHART_STYLE: Final = (
    STYLE
    + """
:root { --load: #4a6fb5; --ready: #7fb0dc; --starting: #eda93b; --spec: #1d2126; --wanted: #b8328f;
  --latency: #23777a; --cost: #8a7ab8; --limit: #c0322b; }
@media (prefers-color-scheme: dark) { :root { --load: #7fa3e6; --ready: #2f6390; --starting: #a8701a;
  --spec: #e6e9ec; --wanted: #ef7fcb; --latency: #56bfc2; --cost: #7565a8; --limit: #ff8078; } }
a { color: inherit; text-underline-offset: .15em; }
.charts { display: grid; gap: .8rem; grid-template-columns: repeat(auto-fit, minmax(min(27rem, 100%), 1fr)); }
figure { min-width: 0; margin: 0; padding: .7rem 1.4rem .5rem .6rem; background: var(--card);
  border: 1px solid var(--line); border-radius: .5rem; }
figcaption { display: flex; flex-wrap: wrap; gap: 0 .9rem; margin: 0 0 .7rem .3rem; font-size: .8rem; }
figcaption b { font-size: .85rem; overflow-wrap: anywhere; }
.plot { display: grid; grid-template-columns: 3.4rem minmax(0, 1fr); grid-template-rows: 8.5rem 1.4rem; }
.plot svg { display: block; width: 100%; height: 100%; overflow: visible; }
.ys, .xs { position: relative; font-size: .72rem; color: var(--faint); font-variant-numeric: tabular-nums; }
.ys span { position: absolute; right: .5rem; transform: translateY(50%); white-space: nowrap; }
.xs { grid-column: 2; } .xs span { position: absolute; top: .35rem; transform: translateX(-50%); }
.plot path { vector-effect: non-scaling-stroke; }
.load { --c: var(--load); } .ready { --c: var(--ready); } .starting { --c: var(--starting); }
.spec { --c: var(--spec); } .wanted { --c: var(--wanted); } .latency { --c: var(--latency); }
.cost { --c: var(--cost); } .target { --c: var(--limit); }
.line { fill: none; stroke: var(--c); stroke-width: 1.6; stroke-linejoin: round; stroke-linecap: round; }
.wanted.line { stroke-width: 1.3; stroke-dasharray: 3 3; } .target.line { stroke-dasharray: 6 4; }
.area { fill: var(--c); stroke: none; } .grid { fill: none; stroke: var(--line); stroke-width: 1; }
.unscored { fill: var(--free); opacity: .6; }
.mark { fill: none; stroke: var(--wanted); stroke-width: 7; stroke-linecap: round; }
.mark:hover { stroke-width: 11; }
.key { display: inline-flex; align-items: center; gap: .35em; color: var(--faint); }
.key::before { content: ""; width: .9em; height: .75em; border-radius: .15em; background: var(--c); }
.key.line::before { width: 1.4em; height: 0; border-top: .16em solid var(--c); border-radius: 0;
  background: none; }
.key.line.wanted::before, .key.line.target::before { border-top-style: dashed; }
.policy > summary { margin: 1.6rem 0 .4rem; font-size: 1.05rem; }
.policy > summary span { font-weight: 400; color: var(--faint); }
.told { margin: 0; padding: 0; list-style: none; font-size: .9rem; }
.told li { padding: .2rem .4rem .2rem 5.2rem; text-indent: -4.8rem; border-radius: .3rem; }
.told b { display: inline-block; min-width: 4.8rem; text-indent: 0; font-variant-numeric: tabular-nums; }
.told li:target { background: var(--free); }
"""
)
