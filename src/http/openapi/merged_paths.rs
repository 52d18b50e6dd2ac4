//! Merges the operations of all `#[OpenApi]` impl blocks, so that each path has one entry in the OpenAPI document.
//!
//! poem-openapi writes the paths of each API struct separately. A path that two structs share becomes a duplicate JSON key, and the
//! operations of one struct vanish from the document although they are served. A status becomes a duplicate JSON key, too, if both the
//! success type and the error type of a handler declare it; this module panics on such a status.
//!
//! The router (`routing`) looks operations up by whole path, so this module also adds the path prefix to the routes.

use std::collections::{HashMap, HashSet};

use poem::{endpoint::BoxEndpoint, http::Method};
use poem_openapi::{
    OpenApi,
    registry::{MetaApi, MetaPath, Registry},
};

/// Groups of operations, which are served and documented together. Each group is a struct with an `#[OpenApi]` block.
#[derive(Debug)]
pub struct MergedGroups<T> {
    pub groups: T,
    /// The path prefix under which the operations are served. It is the server URL in the OpenAPI document.
    pub prefix: &'static str,
}

impl<T: OpenApi> OpenApi for MergedGroups<T> {
    /// # Panics
    ///
    /// If two operations have the same id, or the same method and path, or if an operation declares a status twice. Such a programming
    /// error is noticed at the first start of the server and in every test that uses the operations.
    fn meta() -> Vec<MetaApi> {
        let (mut merged, mut ids) = (Vec::<MetaPath>::new(), HashSet::new());
        for path in T::meta().into_iter().flat_map(|api| api.paths) {
            for operation in &path.operations {
                let mut statuses: Vec<_> = operation.responses.responses.iter().map(|response| response.status).collect();
                statuses.sort_unstable();
                assert!(ids.insert(operation.operation_id), "{:?} is the id of two operations", operation.operation_id);
                assert!(statuses.windows(2).all(|pair| pair[0] != pair[1]), "{} {} declares a status twice", operation.method, path.path);
            }
            match merged.iter_mut().find(|known| known.path == path.path) {
                None => merged.push(path),
                Some(known) => {
                    for operation in path.operations {
                        assert!(
                            known.operations.iter().all(|other| other.method != operation.method),
                            "{} {} is served twice",
                            operation.method,
                            path.path
                        );
                        known.operations.push(operation);
                    }
                }
            }
        }
        vec![MetaApi { paths: merged }]
    }

    fn register(registry: &mut Registry) {
        T::register(registry);
    }

    fn add_routes(self, routes: &mut HashMap<String, HashMap<Method, BoxEndpoint<'static>>>) {
        let mut own = HashMap::new();
        self.groups.add_routes(&mut own);
        routes.extend(own.into_iter().map(|(path, methods)| (format!("{}{path}", self.prefix), methods)));
    }
}
