//! The spaces of a database, and its catalog.

use std::sync::Arc;

use muesli_core::{Catalog, SpaceId, SpaceOptions};

use crate::data::space::Space;
use crate::database::handle::Db;
use crate::error::Error;

impl Db {
    /// The space called `name`.
    ///
    /// # Errors
    /// [`Error::Space`] where there is none, naming those that there are.
    pub fn space(&self, name: &str) -> Result<Space, Error> {
        let catalog = self.catalog();
        catalog.space_named(name).map(|id| self.space_of(id)).ok_or_else(|| {
            let names: Vec<_> = catalog.spaces().iter().map(|space| space.name.as_str()).collect();
            Error::Space(format!("there is no space `{name}`; there are: {}", names.join(", ")))
        })
    }

    /// The space called `name`, made if there is none. Where the data last, it is on the disk when
    /// this returns.
    ///
    /// # Errors
    /// [`Error::Options`] where it exists with other options, or they cannot be; [`Error::Storage`]
    /// where it cannot be kept. On a cluster
    /// also [`Error::Timeout`]; and there it must not be called from a task on the loop.
    pub fn create_space(&self, name: &str, options: SpaceOptions) -> Result<Space, Error> {
        let driver = self.inner.driver.as_ref();
        let elsewhere = driver.and_then(|it| it.make_space(self, name, &options));
        if let Some(made) = elsewhere {
            return made.and_then(|()| self.space(name));
        }
        let mut catalog = self.inner.catalog.write().unwrap_or_else(|broken| broken.into_inner());
        let next = catalog.with_space(name, options.clone())?;
        let id = next.space_named(name).expect("it was just made");
        if next.epoch != catalog.epoch {
            let Some(driver) = &self.inner.driver else {
                return Err(Error::Options("spaces are made before the run".to_owned()));
            };
            driver.keep_space(name, &options)?;
            *catalog = Arc::new(next);
            driver.reconfigure(&catalog);
        }
        Ok(self.space_of(id))
    }

    fn space_of(&self, id: SpaceId) -> Space {
        Space { id, origin: self.inner.origin }
    }

    /// Spaces and placement as they are now.
    pub fn catalog(&self) -> Arc<Catalog> {
        if let Some(catalog) = self.inner.driver.as_ref().and_then(|driver| driver.catalog()) {
            return catalog;
        }
        self.inner.catalog.read().unwrap_or_else(|broken| broken.into_inner()).clone()
    }

    /// The same, as keys are dealt to repositories: where groups keep these, each repository of
    /// this catalog stands for a group.
    pub fn catalog_of_keys(&self) -> Arc<Catalog> {
        let driver = self.inner.driver.as_ref().and_then(|driver| driver.catalog_of_keys());
        driver.unwrap_or_else(|| self.catalog())
    }
}
