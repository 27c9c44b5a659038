-- Written by Prisma from the models, then edited: limits of the values.

-- CreateTable
CREATE TABLE "account_limits" (
    "account_id" BIGINT NOT NULL,
    "requests" BIGINT NOT NULL,
    "window_seconds" BIGINT NOT NULL,
    "per" TEXT NOT NULL,
    "fields" TEXT NOT NULL,
    "retry_after" TEXT NOT NULL,
    "refused" BIGINT NOT NULL DEFAULT 0,
    "early" BIGINT NOT NULL DEFAULT 0,
    "windows" TEXT NOT NULL DEFAULT '[]',

    CONSTRAINT "account_limits_pkey" PRIMARY KEY ("account_id")
);

-- AddForeignKey
ALTER TABLE "account_limits" ADD CONSTRAINT "account_limits_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

ALTER TABLE "account_limits" ADD CONSTRAINT "account_limits_requests_check" CHECK ("requests" >= 1);
ALTER TABLE "account_limits" ADD CONSTRAINT "account_limits_window_seconds_check" CHECK ("window_seconds" >= 1);
ALTER TABLE "account_limits" ADD CONSTRAINT "account_limits_per_check" CHECK ("per" IN ('account', 'key'));
ALTER TABLE "account_limits" ADD CONSTRAINT "account_limits_fields_check" CHECK ("fields" IN ('ietf', 'x-ratelimit', 'none'));
ALTER TABLE "account_limits" ADD CONSTRAINT "account_limits_retry_after_check" CHECK ("retry_after" IN ('seconds', 'date', 'none'));
ALTER TABLE "account_limits" ADD CONSTRAINT "account_limits_refused_check" CHECK ("refused" >= 0);
ALTER TABLE "account_limits" ADD CONSTRAINT "account_limits_early_check" CHECK ("early" >= 0);
