"""What Anthropic's counts come to, whichever of them it sends."""

import pytest

from septet.domain.messages import Usage
from septet.models.providers.anthropic import AnthropicUsage, anthropic_usage


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        (AnthropicUsage(), Usage()),
        (AnthropicUsage(input_tokens=5), Usage(prompt=5)),
        (AnthropicUsage(cache_read_input_tokens=7), Usage(prompt=7, cached=7)),
        (AnthropicUsage(cache_creation_input_tokens=9), Usage(prompt=9)),
        (AnthropicUsage(output_tokens=3), Usage(completion=3)),
        (AnthropicUsage(5, 7, 9, 3), Usage(prompt=21, cached=7, completion=3)),
    ],
)
def test_cached_tokens_are_part_of_the_prompt_and_what_is_not_counted_is_nothing(
    counts: AnthropicUsage, usage: Usage
) -> None:
    assert anthropic_usage(counts) == usage
