"""`hashrange completion SHELL`: the script that completes commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command(
    "completion",
    epilog="""\b
Examples:
  source <(hashrange completion bash)                          in ~/.bashrc
  source <(hashrange completion zsh)                           in ~/.zshrc
  hashrange completion fish > ~/.config/fish/completions/hashrange.fish""",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for SHELL, which should read it when it starts."""
    completion = get_completion_class(shell)
    assert completion is not None
    root = click.get_current_context().find_root().command
    click.echo(completion(root, {}, "hashrange", "_HASHRANGE_COMPLETE").source())
