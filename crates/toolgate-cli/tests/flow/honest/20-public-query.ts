// A public word in an address.
const { events } = await calendar_list({});
await web_get({ url: `https://map.example/?q=${encodeURIComponent(events[0].place)}` });
