"""`lakeboard rebuild-board`: boards counted again from all scores of the lake."""

from typing import TYPE_CHECKING

import click

from lakeboard.commands.reading import JSON_OPTION, print_json
from lakeboard.commands.steps import shown_steps
from lakeboard.settings import Settings

if TYPE_CHECKING:
    from lakeboard.live.rebuilding import Rebuilt


@click.command(
    "rebuild-board",
    epilog="""\b
Examples:
  lakeboard rebuild-board --all                 every board of every game
  lakeboard rebuild-board default all_time      one board, all others as they were certified last
  lakeboard rebuild-board chess daily:2026-11-14
  lakeboard rebuild-board --all --lake-only     certify in gold/board_entries, and leave live boards as they are

Readers notice nothing: new boards are filled beside the live ones, read the log as far as these, and take their place
in one step. It needs room for both. A board that would lose more than a twentieth of its players is refused.""",
)
@click.argument("game", required=False)
@click.argument("board", required=False)
@click.option("--all", "every", is_flag=True, help="All boards of all games.")
@click.option("--force", is_flag=True, help="Also when boards lose players.")
@click.option("--lake-only", is_flag=True, help="Certify in the lake, and leave the live boards as they are.")
@JSON_OPTION
@click.pass_obj
def rebuild_board_command(
    settings: Settings,
    /,
    *,
    game: str | None,
    board: str | None,
    every: bool,
    force: bool,
    lake_only: bool,
    as_json: bool,
) -> None:
    """Count boards again from all scores of the lake, certify them, and put them in place of the live ones.

    Removals and scores that came long after their match are on the boards from then on.
    """
    if every == (game is not None) or (game is None) != (board is None):
        message = "name a game and a board, as `lakeboard rebuild-board default all_time`, or say --all"
        raise click.UsageError(message)
    from lakeboard.live.rebuilding import Wish, rebuild  # noqa: PLC0415  `--help` can do without

    only = None if game is None or board is None else (game, board)
    wish = Wish(only=only, force=force, lake_only=lake_only)
    with shown_steps() as steps:
        done = rebuild(settings, wish, on_step=steps.begin, on_wait=steps.wait, on_detail=steps.detail)
    if as_json:
        print_json(_body(done))
        return
    players = sum(one.players for one in done.certificates if one.game != "*")
    boards = sum(one.game != "*" for one in done.certificates)
    click.echo(
        f"Rebuild {done.certificates[0].rebuild}: {players:,} players on {boards:,} boards certified, "
        + ("and live." if done.is_live else "in the lake only.")
    )
    for one in done.archived:
        click.echo(
            f"Archived: {one.game} {one.board}, {one.places:,} of {one.players:,} players, revision {one.revision}."
        )


def _body(done: "Rebuilt") -> dict[str, object]:
    return {
        "rebuild": done.certificates[0].rebuild,
        "live": done.is_live,
        "scores_version": done.certificates[0].scores_version,
        "boards": [
            {"game": one.game, "board": one.board, "players": one.players, "banned": one.banned, "digest": one.digest}
            for one in done.certificates
        ],
        "archived": [
            {"game": one.game, "board": one.board, "revision": one.revision, "places": one.places}
            for one in done.archived
        ],
        "seconds": {name: round(seconds, 3) for name, seconds in done.seconds.items()},
    }
