"""Programs that CP-SAT must solve correctly with the parameters of planning."""

from __future__ import annotations

from support.planning_builders import EFFORT

from controller.planning.cpsat import Program


def test_a_program_with_few_solutions_is_solved_to_its_optimum() -> None:
    """With variable substitution in presolve, CP-SAT 9.15 proves an optimum of 1000 instead of 0.

    It is what is left of a small placement problem from which everything was removed that did not matter.
    """
    program = Program()
    most = (1, 2, 1, 1, 1, 2, 1, 1000, 0, 1, 1, 0, 1, 2, 1, 1, 1, 1, 1)
    x = [program.variables(1, each)[0] for each in most]
    for terms in (
        [(x[0], 1), (x[4], -1)],
        [(x[1], 1), (x[3], -1), (x[5], -1)],
        [(x[2], 1), (x[6], -1)],
        [(x[4], 2), (x[9], -1), (x[12], -1)],
        [(x[5], 1), (x[10], -1), (x[13], -1)],
        [(x[6], 1), (x[14], -1)],
    ):
        program.row(terms, least=0, most=0)
    program.row([(x[5], 1), (x[3], -2)], most=0)
    program.row([(x[0], 1000), (x[7], 1)], least=1000)
    program.row([(x[1], 1000), (x[2], 1000)], least=1000)
    program.row([(x[12], 2), (x[13], 1), (x[14], 4)], most=2)
    program.row([(x[15], 1), (x[16], 1)], most=1)
    for number, on, at_least_one in ((10, 17, 15), (13, 18, 16)):
        program.switch(x[number], x[on])
        program.row([(x[at_least_one], 1)], least=1, only_if=x[on])
    program.minimize([(x[7], 1)])

    result = program.solve(EFFORT)

    assert result.values[x[7]] == result.bound == 0
