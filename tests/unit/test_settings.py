"""Every setting is an option of `hashrange serve`, in its section and with its default."""

from __future__ import annotations

from dataclasses import fields

from hashrange.cli.serving.options import EVERYDAY, SECTIONS, in_sections
from hashrange.cli.serving.serve import command
from hashrange.server import ServerSettings
from hashrange.settings import Settings


def test_every_setting_is_an_option_in_its_section() -> None:
    sections = {
        section: {parameter.name for parameter in parameters}
        for section, parameters in in_sections(command.params).items()
    }
    classes = [settings for settings in SECTIONS.values() if settings is not None]
    assert classes == [Settings, ServerSettings]
    for section, settings in SECTIONS.items():
        if settings is not None:
            assert sections[section] == {field.name for field in fields(settings)} - set(EVERYDAY)


def test_the_defaults_are_those_of_the_classes() -> None:
    defaults = {parameter.name: parameter.default for parameter in command.params}
    for settings in (Settings, ServerSettings):
        for field in fields(settings):
            assert defaults[field.name] == field.default, field.name
