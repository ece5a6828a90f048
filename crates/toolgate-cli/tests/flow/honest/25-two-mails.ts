// Two mails of the script's own words.
await mail_send({ to: "a@house.example", subject: "Hello", body: "The report is in the usual place." });
await mail_send({ to: "b@house.example", subject: "Hello", body: "The report is in the usual place." });
