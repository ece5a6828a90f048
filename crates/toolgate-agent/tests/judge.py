"""Judges requests and scripted answers by the types of the official SDKs.

Reads a JSON file: a list of {path, beta, request, streamed, answers, foreign}. Prints each thing that the types refuse,
and ends with status 1 if there is one. Two traps: the types of requests are `Iterable`, which pydantic checks only when
somebody iterates, and unknown keys of a `TypedDict` pass. So everything is walked, and keys are compared here.
"""

import collections.abc
import datetime
import functools
import json
import sys
import types
import typing

import pydantic
import typing_extensions
from anthropic.types import Message, RawMessageStreamEvent
from anthropic.types import message_create_params as anthropic_params
from anthropic.types.beta import BetaMessage, BetaRawMessageStreamEvent
from anthropic.types.beta import message_create_params as anthropic_beta_params
from google.genai import types as gemini
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat import completion_create_params as chat_params
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses import response_create_params as responses_params


class GeminiRequest(pydantic.BaseModel, extra="forbid"):
    """The body of a request: the SDK itself has no type for it, but has one for each field."""

    contents: list[gemini.Content]
    systemInstruction: gemini.Content | None = None
    tools: list[gemini.Tool] | None = None
    toolConfig: gemini.ToolConfig | None = None
    generationConfig: gemini.GenerationConfig | None = None


# By the end of the path: the types of a streamed request, another request, an event and a whole answer.
TYPES = {
    "/v1/messages": (
        anthropic_params.MessageCreateParamsStreaming,
        anthropic_params.MessageCreateParamsNonStreaming,
        RawMessageStreamEvent,
        Message,
    ),
    "(beta)": (
        anthropic_beta_params.MessageCreateParamsStreaming,
        anthropic_beta_params.MessageCreateParamsNonStreaming,
        BetaRawMessageStreamEvent,
        BetaMessage,
    ),
    "/responses": (
        responses_params.ResponseCreateParamsStreaming,
        responses_params.ResponseCreateParamsNonStreaming,
        ResponseStreamEvent,
        Response,
    ),
    "/chat/completions": (
        chat_params.CompletionCreateParamsStreaming,
        chat_params.CompletionCreateParamsNonStreaming,
        ChatCompletionChunk,
        ChatCompletion,
    ),
    "/v1beta": (GeminiRequest, GeminiRequest, gemini.GenerateContentResponse, gemini.GenerateContentResponse),
}

# An adapter must outlive the lazy iterators that it made.
ADAPTERS = {}


def adapter(kind):
    if kind not in ADAPTERS:
        ADAPTERS[kind] = pydantic.TypeAdapter(kind)
    return ADAPTERS[kind]


def walk(value):
    """Iterates everything, so that lazy checks happen."""
    if isinstance(value, dict):
        for part in value.values():
            walk(part)
    elif isinstance(value, pydantic.BaseModel):
        for name in type(value).model_fields:
            walk(getattr(value, name))
    elif not isinstance(value, (str, bytes)) and isinstance(value, collections.abc.Iterable):
        for part in value:
            walk(part)


def pydantic_errors(kind, value):
    try:
        walk(adapter(kind).validate_python(value))
    except pydantic.ValidationError as error:
        return [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:5]]
    return []


def key_errors(kind, value, where):
    """What a type refuses, with keys that it does not know. Of a union, what its best member refuses."""
    kind = unwrap(kind)
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        results = [key_errors(member, value, where) for member in args]
        return min(results, key=len) if results else []
    if kind in (typing.Any, object):
        return []
    if kind is None or kind is type(None):
        return [] if value is None else [f"{where}: not null"]
    if origin in (typing.Literal, typing_extensions.Literal):
        # A wrong tag weighs more than many unknown keys, so that a union blames the right member.
        return [] if value in args else [f"{where}: {value!r} is not one of {args}"] * 20
    if typing_extensions.is_typeddict(kind):
        return typed_dict_errors(kind, value, where)
    if isinstance(kind, type) and issubclass(kind, pydantic.BaseModel):
        return model_errors(kind, value, where)
    if origin in (dict, collections.abc.Mapping):
        if not isinstance(value, dict):
            return [f"{where}: not an object"] * 20
        return [e for key, part in value.items() for e in key_errors(args[1], part, f"{where}.{key}")]
    if origin is not None and isinstance(origin, type) and issubclass(origin, collections.abc.Iterable):
        if not isinstance(value, list):
            return [f"{where}: not a list"] * 20
        member = args[0] if args else typing.Any
        return [e for place, part in enumerate(value) for e in key_errors(member, part, f"{where}[{place}]")]
    if kind in (str, int, float, bool):
        fits = isinstance(value, (int, float) if kind is float else kind)
        fits = fits and (kind is bool or not isinstance(value, bool))
        return [] if fits else [f"{where}: {value!r} is not {kind.__name__}"] * 20
    if kind in (datetime.datetime, bytes):
        return [] if isinstance(value, str) else [f"{where}: not a text"] * 20
    # Enumerations and the rest are left to pydantic.
    return []


def unwrap(kind):
    while True:
        origin = typing.get_origin(kind)
        if isinstance(kind, typing_extensions.TypeAliasType):
            kind = kind.__value__
        elif origin in (typing.Annotated, typing_extensions.Required, typing_extensions.NotRequired, typing.Required, typing.NotRequired):
            kind = typing.get_args(kind)[0]
        elif hasattr(kind, "__supertype__"):
            kind = kind.__supertype__
        else:
            return kind


@functools.cache
def hints_of(kind):
    return typing_extensions.get_type_hints(kind, include_extras=True)


@functools.cache
def required(kind):
    # `__required_keys__` is empty where annotations are texts.
    marks = (typing.Required, typing_extensions.Required)
    return [key for key, hint in hints_of(kind).items() if typing.get_origin(hint) in marks]


def tag_errors(kind, value, where):
    """Whether `type` names another member of a union: then nothing else is worth looking at."""
    tag = unwrap(kind) if kind is not None else None
    if typing.get_origin(tag) in (typing.Literal, typing_extensions.Literal) and "type" in value:
        return key_errors(tag, value["type"], f"{where}.type")
    return []


def typed_dict_errors(kind, value, where):
    if not isinstance(value, dict):
        return [f"{where}: not an object"] * 20
    hints = hints_of(kind)
    wrong = tag_errors(hints.get("type"), value, where)
    if wrong:
        return wrong
    errors = [f"{where}: unknown key {key!r} for {kind.__name__}" for key in value if key not in hints]
    errors += [f"{where}: {key!r} is missing for {kind.__name__}" for key in required(kind) if key not in value]
    for key, part in value.items():
        if key in hints:
            errors += key_errors(hints[key], part, f"{where}.{key}")
    return errors


def model_errors(kind, value, where):
    if not isinstance(value, dict):
        return [f"{where}: not an object"] * 20
    fields = {}
    for name, field in kind.model_fields.items():
        fields[field.alias or name] = (field.annotation, field.is_required())
    wrong = tag_errors(fields.get("type", (None,))[0], value, where)
    if wrong:
        return wrong
    errors = [f"{where}: unknown key {key!r} for {kind.__name__}" for key in value if key not in fields]
    errors += [f"{where}: {key!r} is missing for {kind.__name__}" for key, (_, needed) in fields.items() if needed and key not in value]
    for key, part in value.items():
        if key in fields:
            errors += key_errors(fields[key][0], part, f"{where}.{key}")
    return errors


@functools.cache
def refusals(kind, text):
    value = json.loads(text)
    return pydantic_errors(kind, value) + list(dict.fromkeys(key_errors(kind, value, "")))


def judge(kind, text, what):
    return [f"{what}: {error}" for error in refusals(kind, text)[:8]]


def types_of(exchange):
    if exchange["beta"]:
        return TYPES["(beta)"]
    for place, kinds in TYPES.items():
        if place in exchange["path"]:
            return kinds
    raise SystemExit(f"no wire has the path {exchange['path']}")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        exchanges = json.load(file)
    errors, judged = [], 0
    for number, exchange in enumerate(exchanges):
        if exchange["foreign"]:
            continue
        streamed_request, request, event, answer = types_of(exchange)
        body = json.loads(exchange["request"])
        streams = body.get("stream", "stream" in exchange["path"])
        what = f"{exchange['path']} #{number}"
        errors += judge(streamed_request if streams else request, exchange["request"], f"request {what}")
        judged += 1
        for text in exchange["answers"]:
            # The SDKs drop both before they look at types.
            if text in ("[DONE]", '{"type":"ping"}'):
                continue
            errors += judge(event if exchange["streamed"] else answer, text, f"answer {what}")
            judged += 1
    for error in dict.fromkeys(errors):
        print(error)
    print(f"judged {judged}")
    sys.exit(1 if errors else 0)


main()
