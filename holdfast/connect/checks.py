"""Where checks put what they find, so that a user sees every mistake at once."""

from dataclasses import dataclass, field

from holdfast.errors import JobFileError, JobFileProblem, SourceLocation

LENIENT_HINT = " Remove it, or run with --lenient to ignore unknown options as SeaTunnel does."


@dataclass
class CheckReport:
    """Mistakes and warnings found so far.

    Lenient turns unknown options into warnings.  `allow_unset` keeps `${name}` where nothing says
    what it is.  `settled`: the file was checked when the job came, so unknown options are ignored.
    """

    lenient: bool = False
    allow_unset: bool = False
    settled: bool = False
    mistakes: list[JobFileProblem] = field(default_factory=list)
    warnings: list[JobFileProblem] = field(default_factory=list)

    def error(self, place: SourceLocation, message: str) -> None:
        """Note a mistake: the job will not run."""
        self.mistakes.append(JobFileProblem(place, message))

    def warn(self, place: SourceLocation, message: str) -> None:
        """Note something the user should know; the job runs."""
        self.warnings.append(JobFileProblem(place, message))

    def unknown(self, place: SourceLocation, message: str) -> None:
        """Note an unknown option."""
        if self.lenient or self.settled:
            self.warn(place, message + " It is ignored.")
        else:
            hint = "" if "Did you mean" in message else LENIENT_HINT
            self.error(place, message + hint)

    def lacks(self, place: SourceLocation, message: str) -> None:
        """Note an option that SeaTunnel has and we lack: lenient or not, the job will not run."""
        if not self.settled:
            self.error(place, message)

    def raise_if_any(self) -> None:
        """Raise all mistakes together, if there are any."""
        if self.mistakes:
            raise JobFileError(self.mistakes, self.warnings)
