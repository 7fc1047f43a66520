//! Mean waiting in a queue before one server with Poisson arrivals.
//!
//! Source: the Pollaczek–Khinchine formula, L. Kleinrock, "Queueing Systems", volume 1, 1975, section 5.6.

/// Mean time in the queue, service excluded, when service times have the mean `service` and the squared coefficient of
/// variation `variation`. Infinite from a utilisation of 1 on.
pub fn waiting_mg1(utilisation: f64, service: f64, variation: f64) -> f64 {
    if utilisation >= 1.0 {
        return f64::INFINITY;
    }
    utilisation / (1.0 - utilisation) * service * (1.0 + variation) / 2.0
}

/// Mean time in the queue, service excluded, when every service takes as long.
pub fn waiting_md1(utilisation: f64, service: f64) -> f64 {
    waiting_mg1(utilisation, service, 0.0)
}

/// Mean time in the queue, service excluded, when service times are exponential.
pub fn waiting_mm1(utilisation: f64, service: f64) -> f64 {
    waiting_mg1(utilisation, service, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textbook_values() {
        assert_eq!(waiting_mm1(0.5, 10.0), 10.0);
        assert_eq!(waiting_md1(0.5, 10.0), 5.0);
        assert!((waiting_mm1(0.9, 1.0) - 9.0).abs() < 1e-12);
        assert!((waiting_md1(0.8, 1.0) - 2.0).abs() < 1e-12);
        assert_eq!((waiting_md1(0.0, 1.0), waiting_mm1(1.0, 1.0)), (0.0, f64::INFINITY));
    }
}
