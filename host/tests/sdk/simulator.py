#!/usr/bin/env python3
"""The official SDKs against foreshorten-simulator: what it sends must be what they expect, plain and streamed, and what they send back must be taken."""
import signal
import subprocess
import sys

import anthropic
import openai

ROUNDS, WINDOW = 4, 60_000
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}, "required": ["path"]}
RESULT = "a line of a file\n" * 300


class Chat:
    def __init__(self, url):
        self.client, self.messages = openai.OpenAI(base_url=f"{url}/v1", api_key="any"), [{"role": "user", "content": "hello"}]

    def turn(self, streamed):
        args = dict(model="gpt-5", messages=self.messages, tools=[{"type": "function", "function": {"name": "read_file", "parameters": SCHEMA}}])
        if streamed:
            with self.client.chat.completions.stream(**args, stream_options={"include_usage": True}) as stream:
                answer = stream.until_done().get_final_completion()
        else:
            answer = self.client.chat.completions.create(**args)
        message = answer.choices[0].message
        calls = message.tool_calls or []
        sent = [{"id": c.id, "type": "function", "function": {"name": c.function.name, "arguments": c.function.arguments}} for c in calls]
        self.messages.append({"role": "assistant", "content": message.content, **({"tool_calls": sent} if sent else {})})
        self.messages += [{"role": "tool", "tool_call_id": call.id, "content": RESULT} for call in calls]
        return answer.choices[0].finish_reason == "tool_calls", answer.usage.prompt_tokens

    def overflow(self):
        try:
            self.client.chat.completions.create(model="x", messages=[{"role": "user", "content": "word " * WINDOW}])
        except openai.BadRequestError as error:
            return error.code == "context_length_exceeded"


class Responses:
    def __init__(self, url):
        self.client, self.items = openai.OpenAI(base_url=f"{url}/v1", api_key="any"), [{"role": "user", "content": "hello"}]

    def turn(self, streamed):
        tool = {"type": "function", "name": "read_file", "parameters": SCHEMA, "strict": False}
        args = dict(model="gpt-5", input=self.items, store=False, include=["reasoning.encrypted_content"], tools=[tool])
        if streamed:
            with self.client.responses.stream(**args) as stream:
                answer = stream.until_done().get_final_response()
        else:
            answer = self.client.responses.create(**args)
        assert answer.status == "completed" and answer.output[0].type == "reasoning", answer
        for item in answer.output:
            item = item.model_dump(exclude_none=True, exclude={"parsed_arguments"})
            for part in item.get("content") or []:
                part.pop("parsed", None)
            self.items.append(item)
        calls = [item for item in answer.output if item.type == "function_call"]
        self.items += [{"type": "function_call_output", "call_id": call.call_id, "output": RESULT} for call in calls]
        return bool(calls), answer.usage.input_tokens

    def overflow(self):
        try:
            self.client.responses.create(model="x", input="word " * WINDOW)
        except openai.BadRequestError as error:
            return error.code == "context_length_exceeded"


class Messages:
    def __init__(self, url):
        self.client, self.messages = anthropic.Anthropic(base_url=url, api_key="any"), [{"role": "user", "content": "hello"}]

    def turn(self, streamed):
        args = dict(model="sim-1", max_tokens=4_000, system="You are an auditor.", messages=self.messages,
                    thinking={"type": "enabled", "budget_tokens": 1_024}, tools=[{"name": "read_file", "input_schema": SCHEMA}])
        if streamed:
            with self.client.messages.stream(**args) as stream:
                answer = stream.get_final_message()
        else:
            answer = self.client.messages.create(**args)
        assert answer.content[0].type == "thinking", answer
        self.messages.append({"role": "assistant", "content": answer.content})
        calls = [block for block in answer.content if block.type == "tool_use"]
        if calls:
            self.messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": RESULT} for call in calls]})
        return answer.stop_reason == "tool_use", answer.usage.input_tokens

    def overflow(self):
        try:
            self.client.messages.create(model="x", max_tokens=9, messages=[{"role": "user", "content": "word " * WINDOW}])
        except anthropic.BadRequestError as error:
            return "prompt is too long" in str(error)


def play(protocol, url):
    """A whole turn, every second answer streamed; then a prompt that is too long."""
    talk, prompts, more = protocol(url), [0], True
    while more:
        more, prompt = talk.turn(len(prompts) % 2 == 1)
        assert prompt > prompts[-1], prompts
        prompts.append(prompt)
    fine = len(prompts) == ROUNDS + 2 and talk.overflow()
    print(f"  {'ok  ' if fine else 'FAIL'}  {protocol.__name__}: prompts of {', '.join(map(str, prompts[1:]))} tokens")
    return fine


def main():
    server = subprocess.Popen([sys.argv[1], "--protocol", "messages", "--rounds", str(ROUNDS), "--window", str(WINDOW)], stdout=subprocess.PIPE, text=True)
    url = server.stdout.readline().strip().partition("=")[2]
    try:
        verdicts = [play(protocol, url) for protocol in (Chat, Responses, Messages)]
    finally:
        server.send_signal(signal.SIGINT)
        report = server.communicate(timeout=20)[0]
    print(f"  {report.strip().splitlines()[-1]}\n\n{sum(verdicts)} passed, {len(verdicts) - sum(verdicts)} failed")
    return 0 if all(verdicts) and server.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
