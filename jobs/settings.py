"""What a batch job is told: values only, read once by the entry point."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """How Spark runs.

    Attributes:
        lake_root: Folder of the lake.
        java_home: Java 17 or 21.
        jars: The Delta jars, and those of the accelerator where it is on.
        scratch: Folder for shuffles and spills.
        spark_master: `local[*]` in this process, or a cluster.
        driver_memory: Heap of the driver, as Spark writes it.
        shuffle_partitions: Tasks after a shuffle; 4 to 8 suit a laptop.
        accelerator: Run aggregations and shuffles natively (docs/decisions/0006); needs its jar among `jars`.
        extra_conf: Further Spark configuration; wins over ours.
    """

    lake_root: Path
    java_home: Path
    jars: tuple[Path, ...]
    scratch: Path
    spark_master: str = "local[*]"
    driver_memory: str = "4g"
    shuffle_partitions: int = 4
    accelerator: bool = False
    extra_conf: Mapping[str, str] = field(default_factory=dict)
