//! What holds between tables before and after any number of transactions (clause 3.3.2).

/// By condition: its name, and a query that counts what violates it. Sums of binary fractions may differ by less than a cent.
pub(crate) fn conditions(new_orders: &str) -> [(&'static str, String); 4] {
    [
        // Clause 3.3.2.1: the money of a warehouse is that of its districts.
        (
            "warehouse and districts",
            "SELECT count(*) FROM warehouse WHERE 0.005 <
             abs(w_ytd - 300000 - (SELECT sum(d_ytd - 30000) FROM district WHERE d_w_id = w_id))"
                .to_owned(),
        ),
        // Clause 3.3.2.2: the next order's number follows the last one's.
        (
            "districts and orders",
            "SELECT count(*) FROM district WHERE d_next_o_id - 1 <>
             (SELECT max(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id)"
                .to_owned(),
        ),
        // Clause 3.3.2.4: each order has as many lines as it says.
        (
            "orders and lines",
            "SELECT count(*) FROM orders WHERE o_ol_cnt <>
             (SELECT count(*) FROM order_line WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id)"
                .to_owned(),
        ),
        // Clause 3.3.2.5: what waits for delivery has no carrier.
        (
            "orders and new orders",
            format!(
                "SELECT count(*) FROM orders WHERE (o_carrier_id IS NULL) <>
                 EXISTS (SELECT 1 FROM {new_orders} WHERE no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id)"
            ),
        ),
    ]
}
