"""Transforms that SeaTunnel has and Holdfast refuses, each with what to use instead."""

from holdfast.connect.options import options
from holdfast.connect.transform import Transform


@options
class NoOptions:
    """None: the job is refused before they are read."""


class DynamicCompile(Transform[NoOptions]):
    """Java or Groovy source in a job file."""

    name = "DynamicCompile"
    refused = (
        "Holdfast does not compile Java or Groovy from a job file."
        " Use the Sql transform, or the Python transform with a function of your own."
    )


class LLM(Transform[NoOptions]):
    """A language model for each row."""

    name = "LLM"
    refused = (
        "Holdfast calls no language model by itself."
        " Use the Python transform with a function that calls yours."
    )


class Embedding(Transform[NoOptions]):
    """Vectors from a model for each row."""

    name = "Embedding"
    refused = (
        "Holdfast calls no embedding model by itself."
        " Use the Python transform with a function that calls yours."
    )
