"""What the API is told of the settings: the one place that knows both."""

from lakeboard.settings import Settings, size_in_bytes
from serving.settings import ApiSettings


def api_settings(settings: Settings) -> ApiSettings:
    """Return the API's settings as a person chose them."""
    return ApiSettings(
        home=settings.home.absolute(),
        run=settings.run_folder.absolute(),
        log_url=settings.log_address,
        log_folder=settings.log_folder,
        min_free_bytes=size_in_bytes(settings.log_min_free_disk),
        entry_clock=settings.entry_clock,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        open_reads=settings.open_reads,
        cors_origins=tuple(settings.cors.split(",")) if settings.cors else (),
        events_per_second=settings.events_per_second,
        requests_per_second=settings.requests_per_second,
        reads_per_second=settings.reads_per_second,
        views_url=settings.views_address,
        boards=settings.boards(),
        board_shards=settings.board_shards,
        lake_root=settings.lake_root.absolute(),
    )
