-- The transactions in SQLite's dialect; `crate::tpcc::sql` says what each part is for.

-- customers_by_name
SELECT c_id FROM customer WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_last = :name ORDER BY c_first;

-- new_order
SELECT w_tax FROM warehouse WHERE w_id = :w;
SELECT d_next_o_id AS o FROM district WHERE d_w_id = :w AND d_id = :d;
UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = :w AND d_id = :d;
SELECT c_discount FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;
INSERT INTO orders VALUES (:w, :d, :o, :c, :date, NULL, :lines, :is_local);
INSERT INTO new_order VALUES (:w, :d, :o);

-- item
SELECT i_price FROM item WHERE i_id = :item;

-- stock
SELECT s_quantity, s_dist_NN AS info FROM stock WHERE s_w_id = :supplier AND s_i_id = :item;

-- order_line
UPDATE stock
  SET s_quantity = :left, s_ytd = s_ytd + :wanted, s_order_cnt = s_order_cnt + 1,
  s_remote_cnt = s_remote_cnt + :is_remote
  WHERE s_w_id = :supplier AND s_i_id = :item;
INSERT INTO order_line VALUES (:w, :d, :o, :line, :item, :supplier, NULL, :wanted, :amount, :info);

-- payment
UPDATE warehouse SET w_ytd = w_ytd + :amount WHERE w_id = :w;
SELECT w_name FROM warehouse WHERE w_id = :w;
UPDATE district SET d_ytd = d_ytd + :amount WHERE d_w_id = :w AND d_id = :d;
SELECT d_name FROM district WHERE d_w_id = :w AND d_id = :d;

-- payer
SELECT c_credit FROM customer WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_id = :c;
UPDATE customer
  SET c_balance = c_balance - :amount, c_ytd_payment = c_ytd_payment + :amount, c_payment_cnt = c_payment_cnt + 1
  WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_id = :c;

-- good_credit

-- credit_data

-- bad_credit
UPDATE customer SET c_data = substr(:data || c_data, 1, 500) WHERE c_w_id = :c_w AND c_d_id = :c_d AND c_id = :c;

-- history
INSERT INTO history VALUES (:c, :c_d, :c_w, :d, :w, :date, :amount, :data);

-- balance
SELECT c_balance FROM customer WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;

-- last_order
SELECT max(o_id) AS o FROM orders WHERE o_w_id = :w AND o_d_id = :d AND o_c_id = :c;

-- order_status
SELECT o_carrier_id FROM orders WHERE o_w_id = :w AND o_d_id = :d AND o_id = :o;
SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :o;

-- oldest
SELECT min(no_o_id) AS o FROM new_order WHERE no_w_id = :w AND no_d_id = :d;

-- deliver
DELETE FROM new_order WHERE no_w_id = :w AND no_d_id = :d AND no_o_id = :o;
SELECT o_c_id AS c FROM orders WHERE o_w_id = :w AND o_d_id = :d AND o_id = :o;
UPDATE orders SET o_carrier_id = :carrier WHERE o_w_id = :w AND o_d_id = :d AND o_id = :o;
UPDATE order_line SET ol_delivery_d = :date WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :o;
SELECT sum(ol_amount) AS amount FROM order_line WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id = :o;
UPDATE customer SET c_balance = c_balance + :amount, c_delivery_cnt = c_delivery_cnt + 1
  WHERE c_w_id = :w AND c_d_id = :d AND c_id = :c;

-- stock_level
SELECT d_next_o_id AS next FROM district WHERE d_w_id = :w AND d_id = :d;
SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = :w AND s_i_id = ol_i_id
  WHERE ol_w_id = :w AND ol_d_id = :d AND ol_o_id >= :next - 20 AND ol_o_id < :next AND s_quantity < :least;
