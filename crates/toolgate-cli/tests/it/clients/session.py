"""A session of the official Python SDK with a gateway; prints what it saw as JSON.

    session.py '{"mode": "legacy", "prefix": "conformant_", "asking": "…", "url": "http://…"}'
    session.py '{"mode": "auto", "prefix": "", "asking": "…", "command": "…", "args": […], "env": {…}}'

With a prefix, tools are searched and called through the gateway's own; without, they are its tools. `asking` is the
tool that asks the person.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp import types


async def answer(_context, _params):
    return types.ElicitResult(action="accept", content={"name": "Ada", "username": "Ada", "email": "a@b"})


async def main(plan):
    place = plan.get("url") or StdioServerParameters(
        command=plan["command"], args=plan["args"], env=plan["env"]
    )
    progress = []

    async def report(done, total, _message):
        progress.append([int(done), int(total)])

    async with Client(place, mode=plan["mode"], elicitation_callback=answer) as client:

        async def call(tool, arguments, **options):
            result = await client.call_tool(tool, arguments, **options)
            return result.content[0].text

        async def use(tool, **options):
            name, given = plan["prefix"] + tool, {"message": "Who?"} if tool == "test_elicitation" else {}
            if plan["prefix"]:
                return await call("call_tool", {"name": name, "arguments": given}, **options)
            return await call(name, given, **options)

        seen = {
            "version": client.protocol_version,
            "tools": [tool.name for tool in (await client.list_tools()).tools],
            "answer": await use("test_simple_text"),
            "reported": await use("test_tool_with_progress", progress_callback=report),
            "progress": progress,
            "asked": await use(plan["asking"]),
        }
        if plan["prefix"]:
            seen["found"] = await call("search_tools", {"query": "returns one text"})
        if client.server_capabilities.resources:
            resources = (await client.list_resources()).resources
            text = next(item for item in resources if item.name == "static-text")
            seen["resource"] = (await client.read_resource(str(text.uri))).contents[0].text
        if client.server_capabilities.prompts:
            prompts = (await client.list_prompts()).prompts
            prompt = next(item for item in prompts if item.name.endswith("test_prompt_with_arguments"))
            given = {"arg1": "one", "arg2": "two"}
            seen["prompt"] = (await client.get_prompt(prompt.name, given)).messages[0].content.text
    print(json.dumps(seen))


asyncio.run(main(json.loads(sys.argv[1])))
