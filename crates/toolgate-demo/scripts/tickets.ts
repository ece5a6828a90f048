// One ticket for each distinct error of the last hour.
const logs = await logging_getLogs({ level: "error", since: "1h" });
const counts = new Map<string, number>();
for (const entry of logs) counts.set(entry.message, (counts.get(entry.message) ?? 0) + 1);

const issues = await Promise.all(
  [...counts].map(([message, count]) =>
    ticketing_createIssue({ title: message, body: `Logged ${count} times in the last hour.`, labels: ["bug"] })
  )
);
return `${logs.length} errors, ${issues.length} tickets: ${issues.map((issue) => issue.id).sort().join(", ")}`;
