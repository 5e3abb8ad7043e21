"""The Data Strategist: structure, five scenarios, three mutations, specification."""

import json
from collections.abc import Sequence

from pydantic import BaseModel

from sandmle.errors import AnswerError
from sandmle.factory.mix import Seed
from sandmle.factory.roles.answers import Dna, Faults, Place, Places, Specification
from sandmle.factory.roles.blueprint import Blueprint, blueprint, usable_metrics
from sandmle.factory.roles.desk import Call, Desk
from sandmle.factory.seeds.choose import words_of
from sandmle.factory.seeds.words import surviving
from sandmle.files import render, to_json
from sandmle.llm.base import Message
from sandmle.llm.structured import read_answer

_AGAIN = "Reply with the JSON object alone."


def extract(desk: Desk, seed: Seed) -> Dna:
    """Return the structure of a seed as the model sees it."""

    def read(text: str) -> Dna:
        dna = read_answer(text, Dna)
        _silent(seed, dna)
        names = [feature.name for feature in dna.features]
        if names != [f"feat_{i}" for i in range(len(names))]:
            raise AnswerError("features: the names must be feat_0, feat_1 and so on")
        return dna

    return desk.ask(Call("dna", seed.name), _talk("dna", facts=_pretty(seed.dna)), read, _AGAIN)


def imagine(desk: Desk, seed: Seed, dna: Dna) -> tuple[Place, ...]:
    """Return five scenarios of five domains."""

    def read(text: str) -> tuple[Place, ...]:
        places = read_answer(text, Places).scenarios
        domains = {place.domain.casefold() for place in places}
        if len(domains) < len(places):
            raise AnswerError("scenarios: two of them have one domain")
        wanted = {feature.name for feature in dna.features}
        for i, place in enumerate(places):
            if set(place.features) != wanted:
                odd = sorted(wanted ^ set(place.features))[0]
                raise AnswerError(f"scenarios.{i}.features: {odd} is not justified, or not there")
            _silent(seed, place)
        return places

    talk = _talk("places", dna=_pretty(dna), words=_words(seed))
    return desk.ask(Call("places", seed.name), talk, read, _AGAIN)


def spoil(
    desk: Desk, seed: Seed, dna: Dna, place: Place, where: tuple[int, int], used: Sequence[str]
) -> Faults:
    """Return three mutations, others than those used before with this scenario."""

    def read(text: str) -> Faults:
        faults = read_answer(text, Faults)
        names = sorted(fault.name for fault in faults.mutations)
        if len(set(names)) < len(names):
            raise AnswerError("mutations: two of them are the same")
        if "+".join(names) in used:
            raise AnswerError("mutations: these three were used with this scenario already")
        return faults

    talk = _talk("faults", dna=_pretty(dna), place=_pretty(place), used="; ".join(used) or "none")
    return desk.ask(Call("faults", seed.name, *where), talk, read, _AGAIN)


def specify(
    desk: Desk, seed: Seed, dna: Dna, place: Place, faults: Faults, where: tuple[int, int]
) -> Blueprint:
    """Return the specification, checked."""

    def read(text: str) -> Blueprint:
        spec = read_answer(text, Specification)
        _silent(seed, spec)
        return blueprint(dna, spec)

    talk = _talk(
        "spec",
        dna=_pretty(dna),
        place=_pretty(place),
        faults=_pretty(faults),
        least=50,
        most=200,
        metrics=", ".join(usable_metrics()),
        metric=seed.dna.extra.get("metric", "not known"),
        words=_words(seed),
    )
    return desk.ask(Call("spec", seed.name, *where), talk, read, _AGAIN)


def _talk(name: str, **values: object) -> list[Message]:
    return [Message("user", prompt(name, **values))]


def prompt(name: str, **values: object) -> str:
    """Return a filled prompt of one of the roles."""
    return render("sandmle.factory.roles", f"prompts/{name}.md.j2", **values)


def _pretty(value: BaseModel) -> str:
    return to_json(value.model_dump(mode="json"), indent=1)


def _words(seed: Seed) -> str:
    return ", ".join(sorted(words_of(seed)))


def _silent(seed: Seed, value: BaseModel) -> None:
    """Refuse what tells what the seed is about."""
    found = surviving(words_of(seed), json.dumps(value.model_dump(mode="json")))
    if found:
        raise AnswerError(f"the seed can be heard in it: {', '.join(found[:5])}")
