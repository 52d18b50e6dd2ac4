//! Runs the typed calls of the generated Rust clients: `calls progenitor|openapi-generator rev-a|rev-b`. The environment variables
//! `COUNTERPART_URL` and `COUNTERPART_KEY` have the address and an API key of a live server of that revision.

mod openapi_generator;
mod progenitor;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let (url, key) = (variable("COUNTERPART_URL"), variable("COUNTERPART_KEY"));
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["progenitor", "rev-a"] => progenitor::a::calls(&url, &key, Some("5")).await,
        ["progenitor", "rev-b"] => {
            progenitor::b::calls(&url, &key, None).await;
            progenitor::newer(&url, &key).await;
        }
        ["openapi-generator", "rev-a"] => openapi_generator::a::calls(&url, &key, Some("5")).await,
        ["openapi-generator", "rev-b"] => {
            openapi_generator::b::calls(&url, &key, None).await;
            openapi_generator::newer(&url, &key).await;
        }
        _ => panic!("calls progenitor|openapi-generator rev-a|rev-b"),
    }
}
