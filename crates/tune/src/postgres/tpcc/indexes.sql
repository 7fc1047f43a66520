-- The indexes that sysbench-tpcc adds to the primary keys.
CREATE INDEX idx_customer ON customer (c_w_id, c_d_id, c_last, c_first);
CREATE INDEX idx_orders ON orders (o_w_id, o_d_id, o_c_id, o_id);
CREATE INDEX fkey_stock_2 ON stock (s_i_id);
CREATE INDEX fkey_order_line_2 ON order_line (ol_supply_w_id, ol_i_id);
CREATE INDEX fkey_history_1 ON history (h_c_w_id, h_c_d_id, h_c_id);
CREATE INDEX fkey_history_2 ON history (h_w_id, h_d_id);
