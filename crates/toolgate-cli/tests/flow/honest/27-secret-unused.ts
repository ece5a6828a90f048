// A secret is looked at, and only its length is told inside.
const secret = await vault_read_secret({ name: "billing" });
return secret.key.length;
