"""How large boards are: players of the base, and those that changed since."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from speed_layer.store.boards.generations import Generations, shards_of
from speed_layer.store.boards.keys import of_generation
from speed_layer.store.connection import Views, octets


class BoardSize(NamedTuple):
    """How many players a board has, over all shards.

    Attributes:
        base: On the base, those that left it too.
        overlay: That changed or came since it was made.
    """

    base: int
    overlay: int


def board_sizes(views: Views) -> Mapping[str, BoardSize]:
    """Return the sizes of all live boards.

    Raises:
        ViewsUnavailableError: the server does not answer.
    """
    found: dict[str, BoardSize] = {}
    for shard in shards_of(views):
        generation = Generations(views, shard).live()
        if generation is None:
            continue
        with views.translated():
            boards: Any = views.client.hgetall(of_generation(shard, generation, "boards"))
            pointers = {octets(name).decode(): octets(pointer).decode().split() for name, pointer in boards.items()}
            asked = views.client.pipeline(transaction=False)
            for name, (version, *_) in pointers.items():
                asked.zcard(of_generation(shard, generation, f"{name}:{version}:over"))
            overlays = asked.execute()
        for (name, pointer), overlay in zip(pointers.items(), overlays, strict=True):
            before = found.get(name, BoardSize(0, 0))
            found[name] = BoardSize(before.base + int(pointer[5]), before.overlay + int(overlay))
    return found
