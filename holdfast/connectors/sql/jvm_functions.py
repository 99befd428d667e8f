"""The few functions that no expression of Spark's can do: `SqlFunctions.java`, by name.

None of them fails: what has no result is NULL.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CEILING = "holdfast_ceiling"
REMAINDER = "holdfast_remainder"
TRIM_SCALE = "holdfast_trim_scale"
GROUP = "holdfast_group"

CLASSES = {
    CEILING: "SqlFunctions$Ceiling",
    REMAINDER: "SqlFunctions$Remainder",
    TRIM_SCALE: "SqlFunctions$TrimScale",
    GROUP: "SqlFunctions$Group",
}


def make_known(spark: "SparkSession") -> None:
    """Give the functions their names in a session; all of them yield text."""
    java: Any = spark._jvm
    known, register = spark.catalog.functionExists, spark._jsparkSession.udf().register
    for name, java_class in CLASSES.items():
        if not known(name):
            made = getattr(java.holdfast, java_class)()
            register(name, made, java.org.apache.spark.sql.types.DataTypes.StringType)
