"""Rebuild the helper jar that runs in Spark's JVM: `make jar`.

The compiler is Janino, which comes with Spark, so no JDK is needed.  The jar is committed, and a
test compiles it again and compares.
"""

import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.spark import session
from holdfast.spark.jvm import OWN_JAR

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HADOOPS_OWN = {"spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem"}
"""What a session needs that must do without the jar."""


def compiled(spark: "SparkSession", folder: Path) -> dict[str, bytes]:
    """Return the class files, by their names in the jar; `folder` is for the compiler."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    java = gateway.jvm
    sources = sorted(OWN_JAR.parent.glob("*.java"))
    files = gateway.new_array(java.java.io.File, len(sources))
    for number, source in enumerate(sources):
        files[number] = java.java.io.File(str(source))
    compiler = java.org.codehaus.janino.Compiler()
    compiler.setDestinationDirectory(java.java.io.File(str(folder)), False)
    compiler.compile(files)
    made = sorted(folder.rglob("*.class"))
    return {str(file.relative_to(folder)): file.read_bytes() for file in made}


def packed() -> dict[str, bytes]:
    """Return the class files of the jar that is there."""
    with zipfile.ZipFile(OWN_JAR) as jar:
        return {name: jar.read(name) for name in jar.namelist()}


def main() -> int:
    """Write the jar."""
    with tempfile.TemporaryDirectory() as folder:
        starting = session.begin(HADOOPS_OWN, 1, Path(folder, "spark.log"))
        try:
            made = compiled(starting.session(), Path(folder))
        finally:
            session.stop(starting)
    with zipfile.ZipFile(OWN_JAR, "w", zipfile.ZIP_DEFLATED) as jar:
        for name, content in made.items():
            # Without the time of day, so that the same source gives the same jar.
            jar.writestr(zipfile.ZipInfo(name), content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
