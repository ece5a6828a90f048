// One ticket for each distinct error of the last hour.
const logs = await logging_getLogs({ level: "error", since: "1h" });
const counts = new Map<string, number>();
for (const { message } of logs) counts.set(message, (counts.get(message) ?? 0) + 1);

const issues = await Promise.all(
  [...counts].map(([title, count]) =>
    ticketing_createIssue({ title, body: `Logged ${count} times in the last hour.`, labels: ["bug"] })
  )
);
const ids = issues.map((issue) => issue.id).sort();
return `${logs.length} errors, ${ids.length} tickets: ${ids.join(", ")}`;
