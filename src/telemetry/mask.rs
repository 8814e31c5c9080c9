//! Addresses in logs: enough to recognise one, too little to write to it.

/// `maria@example.com` becomes `m***@example.com`; the number of stars says nothing about the
/// length. What is no address shows nothing at all.
pub fn mask_address(address: &str) -> String {
    match address.rsplit_once('@') {
        Some((local, domain)) if !local.is_empty() && !domain.is_empty() => {
            let first: String = local.chars().take(1).collect();
            format!("{first}***@{domain}")
        }
        _ => "***".to_owned(),
    }
}
