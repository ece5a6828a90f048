// Computing.
const { records } = await store_list_records({});
return records.reduce((sum, record) => sum + record.size, 0);
