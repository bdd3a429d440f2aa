//! The list of all points. A test walks over it and fails where one is not reached.

macro_rules! points {
    ($($(#[$note:meta])* $point:ident = $name:literal,)*) => {
        /// A moment in the life of a sandbox, by the process that is at it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Point {
            $($(#[$note])* $point,)*
        }

        impl Point {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$point,)*];

            /// Its name in a test's order.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$point => $name,)*
                }
            }
        }
    };
}

points! {
    /// A runtime directory is there, and nobody's.
    EngineRuntimeMade = "engine.runtime-made",
    /// It is locked.
    EngineRuntimeLocked = "engine.runtime-locked",
    /// The directory of what is kept is there, under no name of a sandbox's.
    EngineKeptBegun = "engine.kept-begun",
    /// The specification is written, under another name.
    EngineSpecUnnamed = "engine.spec-unnamed",
    /// The specification has its name.
    EngineSpecWritten = "engine.spec-written",
    /// The sandbox is listed.
    EngineKeptMade = "engine.kept-made",
    /// The workspace of a new sandbox is ready, the owner's tree looked through where it is one.
    EngineWorkspacePrepared = "engine.workspace-prepared",
    /// A sandbox that has ended is about to be started again.
    EngineBooting = "engine.booting",
    /// The keeper has its order.
    EngineOrderSent = "engine.order-sent",
    /// The id of a new sandbox has been told, and it is not yet kept.
    EngineUnclaimed = "engine.unclaimed",
    /// It is kept.
    EngineClaimed = "engine.claimed",
    /// A client is connected.
    EngineConnected = "engine.connected",
    /// A sandbox is about to be removed.
    EngineRemoving = "engine.removing",
    /// It is not listed any more.
    EngineUnlisted = "engine.unlisted",
    /// What was kept is gone.
    EngineKeptRemoved = "engine.kept-removed",
    /// That is on record.
    EngineRemovalRecorded = "engine.removal-recorded",
    /// The process that unpacks a layer has its order, and is not confined yet.
    ImageWorkerOrdered = "image.worker-ordered",
    /// The first entry of a layer is about to be unpacked.
    ImageLayerBegun = "image.layer-begun",
    /// A layer is unpacked, under another name.
    ImageLayerUnnamed = "image.layer-unnamed",
    /// A layer has its name.
    ImageLayerMade = "image.layer-made",
    /// A blob has come, under another name.
    ImageBlobUnnamed = "image.blob-unnamed",
    /// All that an image needs is there, and it is not listed.
    ImageUnlisted = "image.unlisted",
    /// It is listed.
    ImageListed = "image.listed",
    /// The builder is cloned.
    KeeperBuilderCloned = "keeper.builder-cloned",
    /// The order has come.
    KeeperOrdered = "keeper.ordered",
    /// The cgroups that are to be made are written down.
    KeeperCgroupsNoted = "keeper.cgroups-noted",
    /// The cgroups are made.
    KeeperCgroupsMade = "keeper.cgroups-made",
    /// The builder has its ids.
    KeeperIdsMapped = "keeper.ids-mapped",
    /// The builder has its blueprint.
    KeeperBlueprintSent = "keeper.blueprint-sent",
    /// The start is on record.
    KeeperStartRecorded = "keeper.start-recorded",
    /// The supervisor is forked.
    KeeperSupervisorForked = "keeper.supervisor-forked",
    /// The specification of a sandbox of which nothing is kept is in its runtime directory.
    KeeperFiled = "keeper.filed",
    /// The walls stand.
    KeeperWallsStand = "keeper.walls-stand",
    /// That it runs is written, under another name.
    KeeperRunningUnnamed = "keeper.running-unnamed",
    /// That it runs is on file.
    KeeperRunningFiled = "keeper.running-filed",
    /// Whoever ordered it knows.
    KeeperReadyTold = "keeper.ready-told",
    /// The supervisor has asked for something.
    KeeperPleaHeard = "keeper.plea-heard",
    /// Init is killed.
    KeeperInitKilled = "keeper.init-killed",
    /// The cgroups are removed.
    KeeperCgroupsRemoved = "keeper.cgroups-removed",
    /// That it has ended is written, under another name.
    KeeperEndUnnamed = "keeper.end-unnamed",
    /// That it has ended is on file.
    KeeperEndFiled = "keeper.end-filed",
    /// The runtime directory is removed.
    KeeperRuntimeRemoved = "keeper.runtime-removed",
    /// Whoever ordered it knows that it has ended.
    KeeperEndTold = "keeper.end-told",
    /// The supervisor has its descriptors and no walls.
    SupervisorForked = "supervisor.forked",
    /// The supervisor's walls stand.
    SupervisorConfined = "supervisor.confined",
    /// The first client is served.
    SupervisorServing = "supervisor.serving",
    /// A process is on record, and init has not been asked for it.
    SupervisorExecRecorded = "supervisor.exec-recorded",
    /// Init has been asked for it, and nobody has been told.
    SupervisorExecAsked = "supervisor.exec-asked",
    /// The end of a process is on record, and nobody has been told.
    SupervisorExitRecorded = "supervisor.exit-recorded",
    /// The end of the sandbox is on record, and the keeper has not been asked for it.
    SupervisorEndRecorded = "supervisor.end-recorded",
    /// All last words are said.
    SupervisorLeaving = "supervisor.leaving",
    /// The base of a workspace is in our store, and not yet said to be.
    ReviewBaseWritten = "review.base-written",
    /// The commits for a branch are in the owner's repository, and the branch is not.
    ReviewObjectsStored = "review.objects-stored",
    /// Where an apply prepares is written down.
    ReviewJournalBegun = "review.journal-begun",
    /// What an apply puts into the owner's tree lies beside it.
    ReviewStaged = "review.staged",
    /// What it will do is written down.
    ReviewPlanned = "review.planned",
    /// One more file is in its place.
    ReviewMoved = "review.moved",
    /// All are, and it is not yet said that it is done.
    ReviewAllMoved = "review.all-moved",
    /// It is done, and what it prepared is still there.
    ReviewDone = "review.done",
    /// What was undone is as it was, and what was prepared is still there.
    ReviewUndone = "review.undone",
}

impl Point {
    /// Those between the owner's tree and a workspace, which no life of a sandbox comes by.
    pub const REVIEW: &[Self] = &[
        Self::ReviewBaseWritten,
        Self::ReviewObjectsStored,
        Self::ReviewJournalBegun,
        Self::ReviewStaged,
        Self::ReviewPlanned,
        Self::ReviewMoved,
        Self::ReviewAllMoved,
        Self::ReviewDone,
        Self::ReviewUndone,
    ];

    /// Those of an image on its way into the store, which no life of a sandbox comes by.
    pub const IMAGE: &[Self] = &[
        Self::ImageWorkerOrdered,
        Self::ImageLayerBegun,
        Self::ImageLayerUnnamed,
        Self::ImageLayerMade,
        Self::ImageBlobUnnamed,
        Self::ImageUnlisted,
        Self::ImageListed,
    ];

    /// Those before a step that a full disk makes fail.
    pub const FAILING: &[Self] = &[
        Self::EngineKeptBegun,
        Self::EngineSpecUnnamed,
        Self::KeeperCgroupsNoted,
        Self::KeeperStartRecorded,
        Self::KeeperFiled,
        Self::KeeperRunningUnnamed,
        Self::KeeperEndUnnamed,
    ];

    /// Whether only those come by who may make cgroups.
    #[must_use]
    pub const fn needs_cgroups(self) -> bool {
        matches!(self, Self::KeeperCgroupsNoted | Self::KeeperCgroupsMade)
    }
}
