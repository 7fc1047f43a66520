-- What holds between tables before and after any number of transactions (clause 3.3.2): each query counts what violates a
-- condition. Sums of binary fractions may differ by less than a cent.

-- Clause 3.3.2.1: the money of a warehouse is that of its districts.
SELECT count(*) FROM warehouse WHERE 0.005 <
  abs(w_ytd - 300000 - (SELECT sum(d_ytd - 30000) FROM district WHERE d_w_id = w_id));
-- Clause 3.3.2.2: the next order's number follows the last one's.
SELECT count(*) FROM district WHERE d_next_o_id - 1 <>
  (SELECT max(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id);
-- Clause 3.3.2.4: each order has as many lines as it says.
SELECT count(*) FROM orders WHERE o_ol_cnt <>
  (SELECT count(*) FROM order_line WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id);
-- Clause 3.3.2.5: what waits for delivery has no carrier.
SELECT count(*) FROM orders WHERE (o_carrier_id IS NULL) <>
  EXISTS (SELECT 1 FROM new_order WHERE no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id);
