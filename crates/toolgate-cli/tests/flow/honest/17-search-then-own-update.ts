// A search, then an update with the script's own words.
const { hits } = await web_search({ query: "opening hours" });
await store_update_record({ id: "12", fields: { checked: hits.length > 0 } });
