//! Compares the domain of hosted apps with the service's host.

use config::Config;

use super::report::Finding;

const APPS: &str = "apps domain";

pub(super) fn judge(config: &Config) -> Option<Finding> {
    let base = config.http.public_base_url.as_ref()?;
    Some(compare(base.url().host_str()?, &config.apps.domain))
}

/// Pages on one site can set cookies for the whole site.
fn compare(public: &str, domain: &str) -> Finding {
    let site = |host: &str| {
        let mut labels: Vec<&str> = host.trim_end_matches('.').rsplit('.').take(2).collect();
        labels.reverse();
        labels.join(".")
    };
    let shared = site(public);
    if shared != site(domain) {
        return Finding::ok(APPS, format!("{domain} is another site than {public}"));
    }
    Finding::warning(
        APPS,
        format!(
            "{domain} and {public} are both below {shared}, so an app can set cookies that reach the service"
        ),
        "set SERVICE_APPS_DOMAIN to a domain that is registered for apps alone, or list it in the Public Suffix List",
    )
}

#[cfg(test)]
mod tests {
    use super::super::report::Level;
    use super::*;

    #[test]
    fn apps_on_the_site_of_the_service_cause_a_warning() {
        for (public, domain, level) in [
            ("desk.example.org", "apps.example.org", Level::Warning),
            ("example.org", "apps.example.org", Level::Warning),
            ("desk.example.org", "example-apps.net", Level::Ok),
            ("localhost", "apps.localhost", Level::Ok),
            ("127.0.0.1", "apps.localhost", Level::Ok),
        ] {
            assert_eq!(compare(public, domain).level, level, "{public} {domain}");
        }
    }
}
