"""Local disks as Spark sees them through our jar."""

import os
import stat
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from holdfast.spark.jars.build import compiled, packed

pytestmark = pytest.mark.spark


def test_the_jar_is_what_its_source_compiles_to(spark: SparkSession, tmp_path: Path) -> None:
    assert compiled(spark, tmp_path) == packed(), "run `make jar`"


def test_files_get_the_modes_that_hadoop_gives_them_and_no_checksums(
    spark: SparkSession, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    spark.range(10).repartition(2).write.parquet(str(out))
    files = [f for f in out.iterdir() if f.is_file()]
    assert {f.suffix for f in files} == {".parquet"}
    assert {oct(stat.S_IMODE(f.stat().st_mode)) for f in files} == {"0o644"}
    assert oct(stat.S_IMODE(out.stat().st_mode)) == "0o755"


@pytest.mark.parametrize("mode", [0o400, 0o027, 0o751, 0o000, 0o1777])
def test_every_mode_can_be_set(spark: SparkSession, tmp_path: Path, mode: int) -> None:
    java = spark.sparkContext._jvm
    assert java is not None
    fs = java.org.apache.hadoop.fs
    folder = fs.Path(f"file://{tmp_path}")
    local = folder.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    assert local.getClass().getName() == "holdfast.LocalFiles"
    local.setPermission(folder, fs.permission.FsPermission(java.Short.valueOf(str(mode))))
    try:
        assert stat.S_IMODE(tmp_path.stat().st_mode) == mode
    finally:
        os.chmod(tmp_path, 0o755)  # noqa: PTH101
