"""`make bench-placement`: how good placements are and what they cost, beside other ways of placing.

Every engine places the same generated fleet (`hack.fleets`) in a process of its own (`child`), and who knows
nothing of how answers are found judges them: that they are possible, what stays unmet by priority, and what
they cost over the proven bound. Compared are the strategies of other autoscalers, and HiGHS on a plain
mixed-integer program (`highs`).

F8 and F10 are clusters that churn has fragmented (`fragments`): how many evictions make room, and how long it
takes to find them, beside a model with numbers for every node (`moving`).

`planning` has whole plans, from snapshots to sentences, each from what the last one remembered and timed from
within (`watching`); `repeating` makes the same ones again, which must not differ. `race` runs against HiGHS
to an equal gap, and `joint` has a fleet placed among pods that may move.

`schedule` says what is measured, `measuring` does it part by part, `measurement` is what came of it.
"""
