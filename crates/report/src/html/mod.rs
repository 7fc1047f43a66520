//! stub
use flashwise_profile::DeviceProfile;
use flashwise_tune::Comparison;
/// stub
pub fn comparison_page(_c: &Comparison) -> String {
    "<!DOCTYPE html>".into()
}
/// stub
pub fn profile_page(_c: &DeviceProfile) -> String {
    String::new()
}
