"""Neutral user texts for scenarios without a topic library.

Each fits any topic and any reply. Lengths and endings are distributed like those of real openers.
"""

FOLLOW_UPS: tuple[str, ...] = (
    "That is a helpful start. Could you go a little deeper into the part that you think matters most here?",
    "Thanks, that gives me something to work with. Which of these would you try first, and why that one?",
    "I had not looked at it from that side before. What do people usually get wrong when they try this?",
    "Could you turn that into a short list of steps that I can keep next to me while I get going?",
    "Let me make sure that I follow you. How would I notice after some weeks that it is working at all?",
    "That sounds reasonable to me. I would still like to hear about one alternative before I make up my mind.",
    "Is there anything in what you said that depends on details you do not have from me right now?",
    "Good to know, thank you. I am curious what you would leave out if it all had to be much simpler.",
    "I will think about that tonight. Please give me the two most important points once more in plain words.",
    "What would be a sign that I should stop and do it differently instead of carrying on as planned?",
    "I like the direction of this. Can you help me think through what could go wrong along the way?",
    "Before I begin, I would like to understand the reasons behind your first suggestion a bit better.",
    "Someone told me something rather different last week. How do you explain that advice on this varies so much?",
    "That covers most of what I wanted to ask. I would be glad of one practical example to picture it.",
    "How would you put this to somebody who hears about it for the first time and has little patience?",
    "Fair enough, that makes sense. Tell me which part I could put off without spoiling the rest of it.",
    "Where could I read more on this, or is what you have told me enough to begin with?",
    "I wrote down what you said so far. Please add whatever a careful person would check at the end.",
    "Would your answer change if I wanted to spend as little effort as possible on getting it right?",
    "I see what you mean now. Give me a rough idea of how you would judge whether it was worth it.",
)

OPENERS: tuple[str, ...] = (
    "I have been meaning to ask you about something for a while. Do you have a moment to think it through?",
    "There is a small matter on which I would like a second opinion before I settle it in my own way.",
    "Could you help me get my thoughts in order about something that keeps coming back to me these days?",
    "I would like to talk something over with you today. I will tell you more about it as we go along.",
    "What is a good way to begin when one wants to look at a familiar thing with fresh eyes?",
    "I am back with another of my questions. It should not take long, but I value a clear answer.",
    "How do you usually go about it when someone asks for advice and is not sure what to ask?",
    "Something has been on my mind since the weekend. I hope that you can help me look at it calmly.",
)

RE_MENTIONS: tuple[str, ...] = (
    "To come back to what I asked you before.",
    "This is still on my list from the other day.",
    "I keep returning to this one.",
)
"""Leads into an utterance that the user has made before."""
