\set one random(0, 9999)
\set two (:one + 1 + random(0, 9998)) % 10000
\set amount random(1, 100)
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT balance AS had FROM accounts WHERE id = :one \gset
SELECT balance AS has FROM accounts WHERE id = :two \gset
\if :had >= :amount
UPDATE accounts SET balance = :had::bigint - :amount::bigint WHERE id = :one;
UPDATE accounts SET balance = :has::bigint + :amount::bigint WHERE id = :two;
\endif
COMMIT;
