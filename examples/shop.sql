-- A small shop for the tutorial: 5,000 customers and 60,000 orders, 3.9 MiB. Make it with: sqlite3 shop.db < shop.sql
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, day INTEGER, cents INTEGER, note TEXT);

WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
INSERT INTO customers SELECT i, 'Customer ' || i, 'City ' || i % 97 FROM n;

WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
INSERT INTO orders SELECT i, 1 + i * 7919 % 5000, i / 200, 100 + i * 31 % 9900, 'please deliver before noon, ref ' || i FROM n;

CREATE INDEX orders_by_customer ON orders (customer);
