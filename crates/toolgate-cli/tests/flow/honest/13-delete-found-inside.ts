// What one's own records name is deleted.
const { records } = await store_list_records({});
for (const record of records.slice(0, 2)) await store_delete_record({ id: record.id });
