# Who spent more than the travel budget of their level in Q3?
team = await get_team_members("engineering")

levels = list(set(m["level"] for m in team))
results = await asyncio.gather(*[get_budget_by_level(level) for level in levels])
budgets = {level: budget for level, budget in zip(levels, results)}

expenses = await asyncio.gather(*[get_expenses(m["id"], "Q3") for m in team])

exceeded = []
for member, items in zip(team, expenses):
    spent = sum(item["amount"] for item in items if item["category"] == "travel")
    limit = budgets[member["level"]]["travel_limit"]
    if spent > limit:
        exceeded.append({"name": member["name"], "spent": round(spent, 2), "limit": limit})
print(json.dumps(exceeded))
