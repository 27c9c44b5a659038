-- The ends of leases are real times now. One that was written by the clock of an account that is ahead would last
-- for as long as that clock is ahead: any worker may claim the delivery.
UPDATE "deliveries" SET "next_try_at" = CAST(clock_timestamp() AT TIME ZONE 'UTC' AS timestamp(3))
WHERE "leased_by" IS NOT NULL AND "account_id" IN (SELECT "id" FROM "accounts" WHERE "clock_offset_seconds" > 0);

-- Attempts of webhooks that were deleted: nothing reads them.
DELETE FROM "webhook_attempts" WHERE "webhook_id" NOT IN (SELECT "id" FROM "webhooks");
