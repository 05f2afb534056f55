"""How the page looks, in light and in dark; all of it is in the page itself."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --ground: #fbfbfa; --card: #fff; --ink: #1d2126; --faint: #5d676f;
  --line: #dfe3e6; --good: #1a7f4b; --bad: #c0322b; --advice: #8a5a00; --free: #dde2e6; --others: #8d979f;
  --shade: #0002; }
@media (prefers-color-scheme: dark) { :root { --ground: #14171a; --card: #1c2024; --ink: #e6e9ec;
  --faint: #99a3ab; --line: #32383e; --good: #58c98b; --bad: #ff8078; --advice: #e0b04b; --free: #2a3036;
  --others: #6d7880; --shade: #0009; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 76rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { margin: 0; font-size: 1.6rem; } h2 { margin: 2.2rem 0 .6rem; font-size: 1.15rem; }
p, li, td, .verdict { overflow-wrap: break-word; } ul { margin: .3rem 0; padding-left: 1.2rem; }
h3 { margin: 1.1rem 0 .4rem; font-size: .95rem; font-weight: 600; }
.verdict { margin: .3rem 0 1.2rem; font-size: 1.05rem; font-weight: 600; }
.good { color: var(--good); } .bad { color: var(--bad); } .advice { color: var(--advice); }
.faint { color: var(--faint); }
.tiles { display: flex; flex-wrap: wrap; gap: .7rem; }
.tile { flex: 1 1 9rem; padding: .7rem .9rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .5rem; }
.tile b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; border: 1px solid var(--line); border-radius: .5rem;
  background: linear-gradient(to right, var(--card) 40%, transparent) left / 3rem 100% no-repeat local,
    linear-gradient(to left, var(--card) 40%, transparent) right / 3rem 100% no-repeat local,
    linear-gradient(to right, var(--shade), transparent) left / .7rem 100% no-repeat,
    linear-gradient(to left, var(--shade), transparent) right / .7rem 100% no-repeat, var(--card); }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .4rem .7rem; text-align: left; vertical-align: top; }
th { color: var(--faint); font-size: .8rem; font-weight: 600; white-space: nowrap; }
tbody tr.first, tbody tr.row { border-top: 1px solid var(--line); }
th.number { text-align: right; }
td.number { text-align: right; white-space: nowrap; } td.short { white-space: nowrap; }
td.name { min-width: 11rem; overflow-wrap: anywhere; }
tr.why td { padding-top: 0; font-size: .9rem; } tr.why p { position: sticky;
  left: .7rem; width: fit-content; max-width: calc(100vw - 5rem); margin: 0 0 .2rem;
  overflow-wrap: anywhere; }
details { margin: .5rem 0; } summary { margin-bottom: .4rem; font-weight: 600; cursor: pointer; }
details ul { margin-top: 0; }
.code { display: inline-block; min-width: 1.5em; padding: 0 .3em; margin-right: .5em; border-radius: .25em;
  color: #fff; text-align: center; font: 600 .8rem/1.5 ui-monospace, monospace; }
.nodes { display: flex; flex-wrap: wrap; gap: .45rem .8rem; }
.nodes.small { gap: .2rem .3rem; }
.node { font-size: .75rem; color: var(--faint); max-width: 100%; }
.node svg { display: block; max-width: 100%; height: auto; } .node { overflow-wrap: anywhere; }
.node.off svg { opacity: .45; }
.free { fill: var(--free); } .others { fill: var(--others); }
.new { stroke: var(--ink); stroke-width: 1.5; stroke-dasharray: 3 2; }
.small .new { stroke-width: 1; stroke-dasharray: 2 1; }
text { fill: #fff; font: 600 11px ui-monospace, monospace; text-anchor: middle; pointer-events: none; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1rem; margin: .6rem 0 0; font-size: .85rem;
  color: var(--faint); }
.swatch { display: inline-block; width: .9em; height: .9em; margin-right: .35em; border-radius: .15em;
  vertical-align: -.1em; }
"""
