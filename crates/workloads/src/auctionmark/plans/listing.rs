//! What a seller does with items, and what is asked about them: NewItem (7), UpdateItem (9),
//! NewComment (4), NewCommentResponse (5).

use muesli::arg;
use muesli::plans::{PlanBuilder, PlanValue, PlannedProcedure, RowRange};
use serde::{Deserialize, Serialize};

use super::bidding::ENDED;
use super::reading::NO_ITEM;
use crate::auctionmark::tables::{
    ATTRIBUTES, AuctionItem, AuctionStatus, AuctionUser, CATEGORIES, COMMENTS, GROUPS, ITEMS,
    ItemComment, ItemState, PICTURES, USERS, VALUES,
};

/// What listing an item costs, in cents.
pub(in crate::auctionmark) const FEE: i64 = 100;

/// An item that is new.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::auctionmark) struct NewListing {
    pub seller: u64,
    pub row: AuctionItem,
    pub attributes: Vec<(u16, u8)>,
    pub pictures: Vec<String>,
}

/// Profile 7, NewItem; its number.
pub(in crate::auctionmark) struct ListItem;

impl PlannedProcedure for ListItem {
    const NAME: &'static str = "auctionmark-list-item";
    type Arguments = NewListing;
    type Answer = u64;

    fn plan(plan: &mut PlanBuilder<NewListing>) -> PlanValue<u64> {
        let (seller, category) = (arg!(plan, seller), arg!(plan, row.category));
        let known = plan.read(CATEGORIES, (category,));
        plan.refuse_unless("there is no such category", known, |_, it| it.is_some());
        let above = plan.field(known, "above", |it| it.as_ref().map_or(0, |it| it.1));
        plan.read(CATEGORIES, (above,));
        let user = plan.read(USERS, (seller,));
        plan.refuse_unless("there is no such user", user, |_, user| user.is_some());
        let number =
            plan.field(user, "next item", |user| user.as_ref().map_or(1, |user| user.items + 1));
        plan.insert(ITEMS, (seller, number), (), |new, ()| new.row.clone());
        let (attributes, pictures) = (arg!(plan, attributes), arg!(plan, pictures));
        plan.each(attributes, |plan, attribute| {
            let group = plan.field(attribute.item, "group", |it| it.0);
            let value = plan.field(attribute.item, "value", |it| it.1);
            let in_category = plan.read(GROUPS, (group,));
            let text = plan.read(VALUES, (group, value));
            plan.refuse_unless(
                "there is no such attribute",
                (in_category, text),
                |_, (one, two)| one.is_some() && two.is_some(),
            );
            let place = plan.field(attribute.place, "number", |place| *place as u8 + 1);
            plan.insert(ATTRIBUTES, (seller, number, place), attribute.item, |_, it| *it);
        });
        plan.each(pictures, |plan, picture| {
            let place = plan.field(picture.place, "number", |place| *place as u8 + 1);
            plan.insert(PICTURES, (seller, number, place), picture.item, |_, it| (*it).clone());
        });
        plan.update(USERS, (seller,), (), |_, row, ()| {
            let row = row?;
            let (balance, items) = (row.balance - FEE, row.items + 1);
            Some(AuctionUser { balance, items, ..row })
        });
        plan.field(number, "wide", |number| u64::from(*number))
    }
}

/// A new description of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::auctionmark) struct NewDescription {
    pub seller: u64,
    pub item: u32,
    pub text: String,
    /// Whether the first attribute goes.
    pub drops_attribute: bool,
}

/// Profile 9, UpdateItem; how the item is then.
pub(in crate::auctionmark) struct UpdateItem;

impl PlannedProcedure for UpdateItem {
    const NAME: &'static str = "auctionmark-update-item";
    type Arguments = NewDescription;
    type Answer = Option<ItemState>;

    fn plan(plan: &mut PlanBuilder<NewDescription>) -> PlanValue<Option<ItemState>> {
        let (seller, item) = (arg!(plan, seller), arg!(plan, item));
        let row = plan.read(ITEMS, (seller, item));
        plan.refuse_unless(NO_ITEM, row, |_, row| row.is_some());
        plan.refuse_unless(ENDED, row, |_, row| {
            row.as_ref().as_ref().is_some_and(|row| row.status == AuctionStatus::Open)
        });
        let dropped = plan.when_some(
            (),
            |new, ()| new.drops_attribute,
            |plan| {
                let first = plan.scan(ATTRIBUTES, (seller, item), RowRange::first(1));
                plan.each(first, |plan, attribute| {
                    let place = plan.field(attribute.item, "number", |((.., place), _)| *place);
                    plan.delete(ATTRIBUTES, (seller, item, place));
                });
                plan.field(first, "count", |first| first.len() as u8)
            },
        );
        plan.update(ITEMS, (seller, item), dropped, |new, row, dropped| {
            let row = row?;
            let attributes = row.attributes - dropped.as_ref().as_ref().map_or(0, |it| **it);
            let description = new.text.clone();
            Some(AuctionItem { attributes, description, ..row }.changed())
        });
        plan.field(row, "after", |row| row.clone().map(|row| row.changed().state()))
    }
}

/// A question about an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::auctionmark) struct NewQuestion {
    pub seller: u64,
    pub item: u32,
    pub buyer: u64,
    pub question: String,
}

/// Profile 4, NewComment; how the item is then.
pub(in crate::auctionmark) struct CommentItem;

impl PlannedProcedure for CommentItem {
    const NAME: &'static str = "auctionmark-comment";
    type Arguments = NewQuestion;
    type Answer = Option<ItemState>;

    fn plan(plan: &mut PlanBuilder<NewQuestion>) -> PlanValue<Option<ItemState>> {
        let (seller, item) = (arg!(plan, seller), arg!(plan, item));
        let row = plan.read(ITEMS, (seller, item));
        plan.refuse_unless(NO_ITEM, row, |_, row| row.is_some());
        let number =
            plan.field(row, "next comment", |row| row.as_ref().map_or(1, |row| row.comments + 1));
        plan.insert(COMMENTS, (seller, item, number), (), |new, ()| ItemComment {
            buyer: new.buyer,
            question: new.question.clone(),
            response: None,
        });
        plan.update(ITEMS, (seller, item), (), |_, row, ()| row.map(commented));
        plan.update(USERS, (seller,), (), |_, row, ()| {
            row.map(|row| AuctionUser { unanswered: row.unanswered + 1, ..row })
        });
        plan.field(row, "after", |row| row.clone().map(|row| commented(row).state()))
    }
}

fn commented(row: AuctionItem) -> AuctionItem {
    AuctionItem { comments: row.comments + 1, ..row }.changed()
}

/// An answer to a comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::auctionmark) struct CommentAnswer {
    pub seller: u64,
    pub item: u32,
    pub comment: u32,
    pub response: String,
}

/// Profile 5, NewCommentResponse.
pub(in crate::auctionmark) struct AnswerComment;

impl PlannedProcedure for AnswerComment {
    const NAME: &'static str = "auctionmark-answer-comment";
    type Arguments = CommentAnswer;
    type Answer = ();

    fn plan(plan: &mut PlanBuilder<CommentAnswer>) -> PlanValue<()> {
        let (seller, item, comment) = (arg!(plan, seller), arg!(plan, item), arg!(plan, comment));
        let row = plan.read(COMMENTS, (seller, item, comment));
        plan.refuse_unless("there is nothing to answer", row, |_, row| {
            row.as_ref().as_ref().is_some_and(|row| row.response.is_none())
        });
        plan.update(COMMENTS, (seller, item, comment), (), |new, row, ()| {
            Some(ItemComment { response: Some(new.response.clone()), ..row? })
        });
        plan.update(USERS, (seller,), (), |_, row, ()| {
            row.map(|row| AuctionUser { unanswered: row.unanswered - 1, ..row })
        });
        plan.nothing()
    }
}
