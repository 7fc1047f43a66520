-- The transactions as sysbench-tpcc sends them to PostgreSQL; `crate::tpcc::sql` says what each part is for.

-- customers_by_name
SELECT count(c_id) FROM customer WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_last = :name;
SELECT c_id FROM customer WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_last = :name ORDER BY c_first;

-- new_order
SELECT c_discount::float8, c_last, c_credit, w_tax::float8 FROM customer, warehouse
  WHERE w_id = :w AND c_w_id = w_id AND c_d_id = :d AND c_id = :c;
SELECT d_next_o_id AS o, d_tax::float8 FROM district WHERE d_w_id = :w AND d_id = :d FOR UPDATE;
UPDATE district SET d_next_o_id = :o + 1 WHERE d_id = :d AND d_w_id = :w;
INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
  VALUES (:o, :d, :w, :c, now(), :lines, :is_local);
INSERT INTO new_orders (no_o_id, no_d_id, no_w_id) VALUES (:o, :d, :w);

-- item
SELECT i_price::float8, i_name, i_data FROM item WHERE i_id = :item;

-- stock
SELECT s_quantity::int, s_data, s_dist_NN AS info FROM stock WHERE s_i_id = :item AND s_w_id = :supplier FOR UPDATE;

-- order_line
UPDATE stock SET s_quantity = :left WHERE s_i_id = :item AND s_w_id = :supplier;
INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount,
  ol_dist_info)
  VALUES (:o, :d, :w, :line, :item, :supplier, :wanted, :amount, :info);

-- payment
UPDATE warehouse SET w_ytd = w_ytd + :amount::numeric WHERE w_id = :w;
SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name FROM warehouse WHERE w_id = :w;
UPDATE district SET d_ytd = d_ytd + :amount::numeric WHERE d_w_id = :w AND d_id = :d;
SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name FROM district WHERE d_w_id = :w AND d_id = :d;

-- payer
SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit, c_credit_lim,
  c_discount::float8, c_balance::float8, c_ytd_payment::float8, c_since
  FROM customer WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_id = :c FOR UPDATE;

-- good_credit
UPDATE customer SET c_balance = :c_balance - :amount, c_ytd_payment = :c_ytd_payment + :amount
  WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_id = :c;

-- credit_data
SELECT c_data FROM customer WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_id = :c;

-- bad_credit
UPDATE customer SET c_balance = :c_balance - :amount, c_ytd_payment = :c_ytd_payment + :amount, c_data = :data
  WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_id = :c;

-- history
INSERT INTO history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data)
  VALUES (:c_d, :c_w, :c, :d, :w, now(), :amount, :data);

-- balance
SELECT c_balance::float8, c_first, c_middle, c_last FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;

-- last_order
SELECT o_id AS o, o_carrier_id, o_entry_d FROM orders WHERE o_w_id = :w AND o_d_id = :d AND o_c_id = :c
  ORDER BY o_id DESC LIMIT 1;

-- order_status
SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount::float8, ol_delivery_d
  FROM order_line WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :o;

-- oldest
SELECT no_o_id AS o FROM new_orders WHERE no_d_id = :d AND no_w_id = :w ORDER BY no_o_id ASC LIMIT 1 FOR UPDATE;

-- deliver
DELETE FROM new_orders WHERE no_o_id = :o AND no_d_id = :d AND no_w_id = :w;
SELECT o_c_id AS c FROM orders WHERE o_id = :o AND o_d_id = :d AND o_w_id = :w;
UPDATE orders SET o_carrier_id = :carrier WHERE o_id = :o AND o_d_id = :d AND o_w_id = :w;
UPDATE order_line SET ol_delivery_d = now() WHERE ol_o_id = :o AND ol_d_id = :d AND ol_w_id = :w;
SELECT coalesce(sum(ol_amount), 0)::float8 AS amount FROM order_line
  WHERE ol_o_id = :o AND ol_d_id = :d AND ol_w_id = :w;
UPDATE customer SET c_balance = c_balance + :amount::numeric, c_delivery_cnt = c_delivery_cnt + 1
  WHERE c_id = :c AND c_d_id = :d AND c_w_id = :w;

-- stock_level
SELECT d_next_o_id AS next FROM district WHERE d_id = :d AND d_w_id = :w;
SELECT count(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id < :next
  AND ol_o_id >= :next - 20 AND s_w_id = :w AND s_i_id = ol_i_id AND s_quantity < :least;
