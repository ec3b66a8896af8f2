"""What programs do that were written for OpenAI's service, with the package `openai`.

Arguments: the base address, the key, and the name of a check; without a name, all of them. A check that fails raises.
"""

import json
import sys

import openai

MODEL = "zoo"
SAY = [{"role": "user", "content": "abc"}]
NOW = {
    "type": "function",
    "function": {
        "name": "set_lamp",
        "description": "Switches a lamp",
        "parameters": {
            "type": "object",
            "properties": {"lamp": {"enum": ["left", "right"]}, "on": {"type": "boolean"}},
            "required": ["lamp", "on"],
            "additionalProperties": False,
        },
    },
}


def models(client):
    listed = client.models.list().data
    assert [model.id for model in listed] == [MODEL], listed
    assert client.models.retrieve(MODEL).id == MODEL
    try:
        client.models.retrieve("nobody")
        raise AssertionError("a model that is not there")
    except openai.NotFoundError as error:
        assert error.status_code == 404 and "model" in error.message, error


def chat(client):
    answer = client.chat.completions.create(model=MODEL, messages=SAY, max_completion_tokens=12, temperature=0)
    choice = answer.choices[0]
    assert choice.message.role == "assistant" and choice.message.content, answer
    assert choice.finish_reason == "length", answer
    assert answer.usage.completion_tokens == 12, answer
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 12, answer
    again = client.chat.completions.create(model=MODEL, messages=SAY, max_tokens=12, temperature=0)
    assert again.choices[0].message.content == choice.message.content
    # What the server adds is there for those who look.
    assert answer.speculation["effective"], answer


def streaming(client):
    whole = client.chat.completions.create(model=MODEL, messages=SAY, max_tokens=40, temperature=0)
    stream = client.chat.completions.create(
        model=MODEL, messages=SAY, max_tokens=40, temperature=0, stream=True, stream_options={"include_usage": True}
    )
    text, usage, reasons, role = "", None, [], None
    for chunk in stream:
        assert chunk.object == "chat.completion.chunk", chunk
        usage = chunk.usage or usage
        for choice in chunk.choices:
            role = choice.delta.role or role
            text += choice.delta.content or ""
            reasons += [choice.finish_reason] if choice.finish_reason else []
    assert text == whole.choices[0].message.content, (text, whole)
    assert (role, reasons, usage.completion_tokens) == ("assistant", ["length"], 40), (role, reasons, usage)


def tools(client):
    # The model would ramble before it calls anything: the answer is begun for it.
    begun = SAY + [{"role": "assistant", "content": "<tool_call>\n"}]
    request = {"model": MODEL, "messages": begun, "tools": [NOW], "max_tokens": 400, "temperature": 0}
    request["extra_body"] = {"continue_final_message": True}
    for wanted in ["required", {"type": "function", "function": {"name": "set_lamp"}}]:
        answer = client.chat.completions.create(**request, tool_choice=wanted)
        calls = answer.choices[0].message.tool_calls
        assert answer.choices[0].finish_reason == "tool_calls" and len(calls) == 1, answer
        assert calls[0].id and calls[0].type == "function" and calls[0].function.name == "set_lamp", answer
        arguments = json.loads(calls[0].function.arguments)
        assert arguments["lamp"] in ("left", "right") and isinstance(arguments["on"], bool), arguments
    # In pieces it is the same call.
    name, pieces, reason = "", "", None
    for chunk in client.chat.completions.create(**request, tool_choice="required", stream=True):
        for choice in chunk.choices:
            reason = choice.finish_reason or reason
            for call in choice.delta.tool_calls or []:
                assert call.index == 0, chunk
                name += call.function.name or ""
                pieces += call.function.arguments or ""
    assert (name, json.loads(pieces), reason) == ("set_lamp", arguments, "tool_calls"), (name, pieces, reason)
    # And its result can be given back.
    call = calls[0].model_dump()
    messages = SAY + [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": "done"},
    ]
    answer = client.chat.completions.create(model=MODEL, messages=messages, tools=[NOW], max_tokens=5, temperature=0)
    assert answer.usage.completion_tokens > 0, answer
    # A tool that is not there cannot be called.
    try:
        nobody = {"type": "function", "function": {"name": "nobody"}}
        client.chat.completions.create(model=MODEL, messages=SAY, tools=[NOW], tool_choice=nobody)
        raise AssertionError("a call of nothing")
    except openai.BadRequestError as error:
        assert error.body["param"] == "tool_choice", error


def json_schema(client):
    schema = NOW["function"]["parameters"]
    wanted = {"type": "json_schema", "json_schema": {"name": "lamp", "schema": schema, "strict": True}}
    answer = client.chat.completions.create(
        model=MODEL, messages=SAY, response_format=wanted, max_tokens=200, temperature=0
    )
    value = json.loads(answer.choices[0].message.content)
    assert value["lamp"] in ("left", "right") and isinstance(value["on"], bool), value
    assert answer.choices[0].finish_reason == "stop", answer


def logprobs(client):
    answer = client.chat.completions.create(
        model=MODEL, messages=SAY, max_tokens=8, temperature=0, logprobs=True, top_logprobs=3
    )
    content = answer.choices[0].logprobs.content
    assert len(content) == 8, answer
    for token in content:
        assert token.logprob <= 0 and len(token.top_logprobs) == 3, token
        # The text is greedy, so each token is the most probable one.
        assert token.top_logprobs[0].token == token.token, token
        assert token.top_logprobs[0].logprob >= token.top_logprobs[1].logprob, token
    text = b"".join(bytes(token.bytes) for token in content).decode()
    assert text == answer.choices[0].message.content, (text, answer)


def choices(client):
    # Hot enough for a model that is nearly sure of each token.
    request = {"model": MODEL, "messages": SAY, "max_tokens": 30, "temperature": 4, "top_p": 1, "seed": 7, "n": 3}
    request["extra_body"] = {"top_k": 0, "min_p": 0}

    def texts():
        answer = client.chat.completions.create(**request)
        return [choice.message.content for choice in sorted(answer.choices, key=lambda choice: choice.index)]

    first = texts()
    assert len(first) == 3 and len(set(first)) > 1, first
    assert texts() == first, first


def completions(client):
    answer = client.completions.create(model=MODEL, prompt="abc", max_tokens=20, temperature=0, logprobs=2)
    whole = answer.choices[0].text
    assert answer.choices[0].finish_reason == "length" and len(answer.choices[0].logprobs.tokens) == 20, answer
    stop = whole[8:11]
    stopped = client.completions.create(model=MODEL, prompt="abc", max_tokens=20, temperature=0, stop=[stop])
    assert stopped.choices[0].text == whole[: whole.index(stop)], (whole, stopped)
    assert stopped.choices[0].finish_reason == "stop", stopped
    both = client.completions.create(model=MODEL, prompt=["abc", "xyz"], max_tokens=5, temperature=0)
    assert [choice.index for choice in both.choices] == [0, 1], both
    text = "".join(
        chunk.choices[0].text
        for chunk in client.completions.create(model=MODEL, prompt="abc", max_tokens=20, temperature=0, stream=True)
        if chunk.choices
    )
    assert text == whole, (text, whole)


def speculation(client):
    texts = set()
    fixed = {"draft_max": 2, "draft_length": 2}
    for wanted in ["off", "auto", fixed]:
        answer = client.chat.completions.create(
            model=MODEL, messages=SAY, max_tokens=60, temperature=0, extra_body={"speculation": wanted}
        )
        texts.add(answer.choices[0].message.content)
        drafted = answer.speculation["drafted"]
        # With a model this small drafts need not pay.
        assert drafted == 0 if wanted == "off" else drafted > 0 or wanted == "auto", answer
    assert len(texts) == 1, texts


def errors(client):
    def refused(kind, **request):
        try:
            client.chat.completions.create(**{"model": MODEL, "messages": SAY, "max_tokens": 2, **request})
        except kind as error:
            assert error.body["message"] and error.body["type"], error
            return error
        raise AssertionError(f"{request} was not refused")

    assert refused(openai.BadRequestError, temperature=3000).body["param"] == "temperature"
    assert refused(openai.BadRequestError, top_logprobs=1000, logprobs=True).body["param"] == "top_logprobs"
    refused(openai.BadRequestError, messages=[])
    refused(openai.BadRequestError, messages=[{"role": "user", "content": "x" * 20000}])
    refused(openai.BadRequestError, extra_body={"speculation": {"method": "no-such-method"}})
    nobody = client.with_options(api_key="wrong")
    try:
        nobody.models.list()
        raise AssertionError("any key will do")
    except openai.AuthenticationError as error:
        assert error.status_code == 401, error
    try:
        client.embeddings.create(model=MODEL, input="abc")
        raise AssertionError("embeddings")
    except openai.APIStatusError as error:
        assert "embedding" in error.message, error


def closing(client):
    """Closes a stream after its first pieces; the caller looks at the slots."""
    stream = client.chat.completions.create(model=MODEL, messages=SAY, max_tokens=100000, temperature=0, stream=True)
    for number, _ in enumerate(stream):
        if number == 3:
            stream.close()
            return
    raise AssertionError("the stream ended by itself")


CHECKS = [models, chat, streaming, tools, json_schema, logprobs, choices, completions, speculation, errors, closing]


def main():
    address, key, *names = sys.argv[1:]
    client = openai.OpenAI(base_url=address, api_key=key, max_retries=0, timeout=120)
    for check in CHECKS:
        if not names or check.__name__ in names:
            check(client)
            print(check.__name__, "holds", flush=True)


main()
