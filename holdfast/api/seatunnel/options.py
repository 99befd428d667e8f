"""SeaTunnel's /option-rules (23): what a connector takes, for forms."""

import msgspec

from holdfast.api.route import ApiRequest, Permission, Route
from holdfast.api.routes import connectors
from holdfast.api.seatunnel.views import OptionRule, OptionRules, RequiredRule, RuleOption
from holdfast.api.service import Api
from holdfast.api.shapes import OptionView
from holdfast.errors import UserError
from holdfast.model.job import Role


class RulesAsked(msgspec.Struct):
    """Which connector: `type` is source, transform or sink."""

    type: str = ""
    plugin: str = ""


class OptionsV2:
    """The handler."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def routes(self) -> list[Route]:
        """Return the path."""
        return [
            Route("GET", "/option-rules", Permission.READ, self.rules, OptionRules,
                  "23. The options of a connector.", RulesAsked, leads=False),
        ]  # fmt: skip

    async def rules(self, ask: ApiRequest) -> OptionRules:
        asked: RulesAsked = ask.query
        if asked.type not in list(Role) or not asked.plugin:
            good = ", ".join(Role)
            raise UserError(f"Give type (one of {good}) and plugin.", code="request.query")
        found = connectors.view(self.api.registry, asked.type, asked.plugin)
        optional = [_option(o) for o in found.options if not o.required]
        needed = [
            RequiredRule("ABSOLUTELY_REQUIRED", [_option(o)], None, None)
            for o in found.options
            if o.required
        ]
        rule = OptionRule(optional, needed, [], [])
        return OptionRules("Holdfast", asked.type, found.name, rule)


def _option(one: OptionView) -> RuleOption:
    values = one.choices or None
    return RuleOption(one.key, one.kind, one.default, one.doc, one.aliases, values)
