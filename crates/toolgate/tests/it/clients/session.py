"""A session of the official Python SDK with a gateway; prints what it saw as JSON.

    session.py '{"mode": "legacy", "url": "http://…"}'
    session.py '{"mode": "2026-07-28", "command": "…", "args": […], "env": {…}}'
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp import types


async def answer(_context, _params):
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def main(plan):
    place = plan.get("url") or StdioServerParameters(
        command=plan["command"], args=plan["args"], env=plan["env"]
    )
    progress = []

    async def report(done, total, _message):
        progress.append([done, total])

    async with Client(place, mode=plan["mode"], elicitation_callback=answer) as client:

        async def call(tool, arguments, **options):
            result = await client.call_tool(tool, arguments, **options)
            return result.content[0].text

        async def through(tool, **options):
            return await call("call_tool", {"name": f"conformant_{tool}", "arguments": {}}, **options)

        seen = {
            "version": client.protocol_version,
            "tools": [tool.name for tool in (await client.list_tools()).tools],
            "found": await call("search_tools", {"query": "returns one text"}),
            "answer": await through("test_simple_text"),
            "reported": await through("test_tool_with_progress", progress_callback=report),
            "greeting": await through("test_input_required_result_elicitation"),
        }
        resources = (await client.list_resources()).resources
        prompts = (await client.list_prompts()).prompts
        text = next(item for item in resources if item.name == "static-text")
        prompt = next(item for item in prompts if item.name.endswith("test_prompt_with_arguments"))
        given = {"arg1": "one", "arg2": "two"}
        seen |= {
            "progress": progress,
            "resource": (await client.read_resource(str(text.uri))).contents[0].text,
            "prompt": (await client.get_prompt(prompt.name, given)).messages[0].content.text,
        }
    print(json.dumps(seen))


asyncio.run(main(json.loads(sys.argv[1])))
