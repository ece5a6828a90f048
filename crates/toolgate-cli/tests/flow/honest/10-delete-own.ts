// What the script names is deleted, without having read anything.
await store_delete_record({ id: "4711" });
