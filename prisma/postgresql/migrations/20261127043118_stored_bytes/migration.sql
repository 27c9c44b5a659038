-- AlterTable
ALTER TABLE "accounts" ADD COLUMN "stored_bytes" BIGINT NOT NULL DEFAULT 0;

-- The texts of what accounts store already, and 64 bytes for each row.
UPDATE accounts SET stored_bytes = 0
  + coalesce((SELECT sum(64 + coalesce(octet_length(label), 0) + coalesce(octet_length(prefix), 0) + coalesce(octet_length(hash), 0)) FROM api_keys WHERE account_id = accounts.id), 0)
  + coalesce((SELECT sum(64 + coalesce(octet_length(name), 0) + coalesce(octet_length(description), 0)) FROM categories WHERE account_id = accounts.id), 0)
  + coalesce((SELECT sum(64 + coalesce(octet_length(name), 0)) FROM pets WHERE account_id = accounts.id), 0)
  + coalesce((SELECT sum(64) FROM inventory_items WHERE account_id = accounts.id), 0)
  + coalesce((SELECT sum(64) FROM orders WHERE account_id = accounts.id), 0)
  + coalesce((SELECT sum(64 + coalesce(octet_length(id), 0) + coalesce(octet_length(message), 0)) FROM messages WHERE account_id = accounts.id), 0)
  + coalesce((SELECT sum(64 + coalesce(octet_length(url), 0) + coalesce(octet_length(events), 0) + coalesce(octet_length(secret), 0) + coalesce(octet_length(previous_secret), 0) + coalesce(octet_length(attempts), 0)) FROM webhooks WHERE account_id = accounts.id), 0)
  + coalesce((SELECT sum(64 + coalesce(octet_length(type), 0) + coalesce(octet_length(data), 0)) FROM events WHERE account_id = accounts.id), 0)
  + coalesce((SELECT sum(64 + coalesce(octet_length(key), 0) + coalesce(octet_length(fingerprint), 0) + coalesce(octet_length(record), 0) + coalesce(octet_length(etag), 0)) FROM idempotency_records WHERE account_id = accounts.id), 0)
  + coalesce((SELECT sum(64 + coalesce(octet_length(kind), 0) + coalesce(octet_length(data), 0)) FROM snapshot_rows WHERE account_id = accounts.id), 0);
