//! The router: finds the operation of a request by path and method.
//!
//! No path of the OpenAPI documents has parameters, so a hash table is enough. poem's router matches patterns, and each of its layers adds
//! a boxed future to every request, which costs measurable time.

use std::{collections::HashMap, sync::Arc};

use poem::{
    Endpoint, EndpointExt, Request, Response,
    endpoint::{BoxEndpoint, DynEndpoint},
    error::MethodNotAllowedError,
    http::Method,
};
use poem_openapi::OpenApi;

/// The prefix of the paths of the contract's operations.
pub const PREFIX: &str = "/v1";

/// The prefix of the paths of the settings API.
pub const SETTINGS_PREFIX: &str = "/settings/v1";

/// Returns whether a path belongs to the settings API, even if nothing is served at it.
pub fn in_settings(path: &str) -> bool {
    path.strip_prefix(SETTINGS_PREFIX).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The routing table: all operations, by their complete path and then by their method.
#[derive(Default)]
pub struct Operations(HashMap<String, HashMap<Method, BoxEndpoint<'static>>>);

impl Operations {
    pub fn add(&mut self, api: impl OpenApi) {
        api.add_routes(&mut self.0);
    }

    /// Adds an endpoint at a path that no OpenAPI document lists. `methods` are the methods that the path accepts.
    pub fn at(&mut self, path: &str, methods: &[Method], endpoint: impl Endpoint<Output = Response> + 'static) {
        let endpoint = Arc::new(endpoint);
        let served = methods.iter().map(|method| (method.clone(), endpoint.clone().boxed()));
        self.0.entry(path.to_owned()).or_default().extend(served);
    }

    /// Returns the methods that a path accepts, in alphabetical order. Empty: nothing is served at the path.
    pub fn methods(&self, path: &str) -> Vec<&str> {
        let mut methods: Vec<&str> = self.0.get(path).into_iter().flat_map(|methods| methods.keys()).map(Method::as_str).collect();
        methods.sort_unstable();
        methods
    }

    /// Returns the operation of a request. `None`: nothing is served at its path. An error: the path does not accept its method.
    pub fn find(&self, request: &Request) -> Option<Result<&dyn DynEndpoint<Output = Response>, MethodNotAllowedError>> {
        let methods = self.0.get(request.uri().path())?;
        Some(methods.get(request.method()).map(|endpoint| &**endpoint).ok_or(MethodNotAllowedError))
    }
}
